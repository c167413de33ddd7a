// How fast this machine's cores read memory: what bounds every matrix-vector product of a resident model.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace tierd {

// Bytes per second that `threads` threads together load, each from its own part of `bytes` (choose it well
// above the caches), for about `seconds`. Errors: no_space, when memory or threads are not to be had.
Result<double> measure_memory_read(uint32_t threads, double seconds, uint64_t bytes = uint64_t{1} << 29);

}  // namespace tierd
