// The shared object with libtorch in it, the only one that is linked with it: libtorch's protobuf and
// libsentencepiece's (core/text) share names, and must not meet.
#pragma once

#include "core/base/result.h"

namespace tierd {

// What it exports under that name, a function. Errors: unsupported where this program was built without
// libtorch, saying so of `command`, or the library cannot be loaded.
Result<void*> trainer_symbol(const char* command, const char* symbol);

}  // namespace tierd
