// Standard output carries what a program was asked for, standard error everything else.
#pragma once

#include <string_view>

#include "core/base/result.h"

namespace tierd {

// Call first in main. Puts something harmless in the place of a closed stream, so that no file of ours gets
// its number and no message lands in a store; and sends the log to standard error. An exception that nobody
// catches, on whatever thread, ends the program with a line there and status 1: out of memory or descriptors,
// libraries throw.
void prepare_standard_streams();

// Writes and flushes. Error: io_error, when a disk is full or nobody reads any more.
Status write_output(std::string_view text);

}  // namespace tierd
