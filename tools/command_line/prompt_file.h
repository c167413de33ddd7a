// A prompt that lies in a file.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

// Every byte of it; the file may be a pipe. Error: invalid_argument naming it.
Result<std::string> read_prompt_file(const std::string& path);

}  // namespace tierd
