// The shared object with libtorch in it, the only one that is linked with it: libtorch's protobuf and
// libsentencepiece's (core/model/text) share names, and must not meet.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace tierd {

// Bytes that libtorch takes when it is loaded: 65 MB of heap and 100 MB of pages of its file were measured.
// With less, the process reads these pages again and again.
inline constexpr uint64_t kTrainerBytes = uint64_t{128} << 20;

// Returns the function that the library exports under that name. Errors: no_space where that is not left;
// unsupported where this program was built without libtorch, saying so of `command`, or the library cannot be
// loaded.
Result<void*> trainer_symbol(const char* command, const char* symbol);

}  // namespace tierd
