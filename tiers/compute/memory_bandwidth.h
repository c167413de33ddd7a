// How fast this machine's cores read memory: what bounds every matrix-vector product of a resident model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"

namespace tierd {

// Bytes per second that `threads` threads together load, each from its own part of `bytes` (choose it well
// above the caches; of what memory is left, a quarter is taken at most), for about `seconds`. Errors:
// no_space, when memory or threads are not to be had.
Result<double> measure_memory_read(uint32_t threads, double seconds, uint64_t bytes = uint64_t{1} << 29);

// The same over memory that is there already, such as a model's weights, without taking any more: whole
// pieces of 2 MiB of each of these. Nobody writes to them meanwhile. Error besides: invalid_argument for less
// than 2 MiB a thread, or not aligned to 64 B.
Result<double> measure_memory_read(uint32_t threads, double seconds,
                                   std::span<const std::span<const std::byte>> memory);

// The same with so little memory that caches could hold it (some MiB, at most a quarter of what is left; 64
// KiB a thread at least): every pass begins when no cache has any of it.
Result<double> measure_uncached_read(uint32_t threads, double seconds, uint64_t bytes);

}  // namespace tierd
