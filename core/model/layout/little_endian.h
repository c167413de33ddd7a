// Loads and stores 16-bit values at any alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tierd {

inline uint16_t load_u16(const std::byte* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline void store_u16(std::byte* p, uint16_t value) {
  std::memcpy(p, &value, sizeof value);
}

}  // namespace tierd
