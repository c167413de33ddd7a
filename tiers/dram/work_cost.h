// Rough running times of kernels, only to decide whether work is worth sharing.
#pragma once

#include <cstdint>

namespace tierd {

// Bytes that one core reads, and floats that it computes, in a nanosecond.
inline constexpr uint64_t kBytesPerNs = 30;
inline constexpr uint64_t kFloatsPerNs = 4;
// Tokens that one read of the weights serves before computing dominates.
inline constexpr uint64_t kRowsPerRead = 8;
inline constexpr uint64_t kGrainBytes = 64 << 10;  // weights that one worker takes at a time, at least

// Returns the estimate for weights of so many bytes, in ns.
constexpr uint64_t cost_of(uint64_t bytes, uint32_t rows) {
  return bytes / kBytesPerNs * (1 + rows / kRowsPerRead);
}

}  // namespace tierd
