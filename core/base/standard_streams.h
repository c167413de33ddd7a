// Standard output carries a program's result, standard error everything else.
#pragma once

#include <string_view>

#include "core/base/result.h"

namespace tierd {

// Call it first in main. Opens /dev/null for each closed standard stream, so that no file gets its number and
// no message is written into a store; sends the log to standard error. Sets a terminate handler: an uncaught
// exception on any thread, which libraries throw when memory or descriptors run out, ends the program with a
// line and status 1.
void prepare_standard_streams();

// Writes and flushes. Error: io_error if a disk is full or the reader has closed the pipe.
Status write_output(std::string_view text);

}  // namespace tierd
