// A text that a program was asked to write to a file.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

// Writes the whole text, in place of what was there; folders that are missing are made. It never stands there
// half-written. Error: io_error.
Status write_text_file(const std::string& path, const std::string& text);

}  // namespace tierd
