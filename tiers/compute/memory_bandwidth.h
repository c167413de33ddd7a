// Measures how fast the cores read memory, which limits each matrix-vector product of a resident model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"

namespace tierd {

// Returns the bytes per second that `threads` threads together load, each from its own part of `bytes`, for
// about `seconds`. `bytes` should be well above the caches; at most a quarter of the free memory is used.
// Error: no_space, if memory or threads are not available.
Result<double> measure_memory_read(uint32_t threads, double seconds, uint64_t bytes = uint64_t{1} << 29);

// The same over memory that exists already, such as a model's weights, without allocating: whole pieces of 2
// MiB of each range. No thread may write to them meanwhile. Further error: invalid_argument for less than 2
// MiB a thread, or for memory that is not aligned to 64 B.
Result<double> measure_memory_read(uint32_t threads, double seconds,
                                   std::span<const std::span<const std::byte>> memory);

// The same with so little memory that caches could hold it (some MiB, at most a quarter of the free memory;
// at least 64 KiB a thread): the caches are flushed before every pass.
Result<double> measure_uncached_read(uint32_t threads, double seconds, uint64_t bytes);

}  // namespace tierd
