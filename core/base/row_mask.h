// A set of rows of a batch as bits: row r is bit r % 64 of word r / 64.
#pragma once

#include <cstdint>

namespace tierd {

constexpr uint32_t mask_words(uint32_t rows) {
  return (rows + 63) / 64;
}
constexpr bool mask_has(const uint64_t* mask, uint32_t row) {
  return (mask[row / 64] >> (row % 64) & 1) != 0;
}

}  // namespace tierd
