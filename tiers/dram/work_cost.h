// About how long kernels take: only to judge whether work is worth sharing.
#pragma once

#include <cstdint>

namespace tierd {

// What one core reads and computes in a nanosecond, roughly.
inline constexpr uint64_t kBytesPerNs = 30;
inline constexpr uint64_t kFloatsPerNs = 4;
// Tokens that a read of the weights serves before compute dominates.
inline constexpr uint64_t kRowsPerRead = 8;
inline constexpr uint64_t kGrainBytes = 64 << 10;  // weights that one worker takes at a time, at least

// For weights of so many bytes, in ns.
constexpr uint64_t cost_of(uint64_t bytes, uint32_t rows) {
  return bytes / kBytesPerNs * (1 + rows / kRowsPerRead);
}

}  // namespace tierd
