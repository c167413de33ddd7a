// Writes a program's text output to a file.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

// Replaces the file as a whole, so that it is never partial; missing folders are created. Error: io_error.
Status write_text_file(const std::string& path, const std::string& text);

}  // namespace tierd
