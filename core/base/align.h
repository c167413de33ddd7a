#pragma once

#include <cstdint>

namespace tierd {

// The alignment of offsets, lengths and addresses that O_DIRECT accepts on every disk tested.
inline constexpr uint64_t kDirectIoAlignment = 4096;

inline constexpr uint64_t kPageBytes = 4096;

constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
constexpr uint64_t align_down(uint64_t value, uint64_t alignment) {
  return value / alignment * alignment;
}
constexpr uint64_t divide_up(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

}  // namespace tierd
