// Reads a prompt from a file.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

// Returns all bytes; the file may be a pipe. Error: invalid_argument naming it.
Result<std::string> read_prompt_file(const std::string& path);

}  // namespace tierd
