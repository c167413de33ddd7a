// The words of a block (block_layout.h) from its bytes in GGUF's order, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/model/layout/block_layout.h"

namespace tierd {

// Four bytes of eight bits: bit c of byte k from bit 4c + k, and the inverse.
constexpr uint32_t fours_of_bits(uint32_t in_order) {
  uint32_t fours = 0;
  for (uint32_t four = 0; four < kFours; ++four) {
    const uint32_t bits = in_order >> 4 * four & 15;
    fours |= (bits * 0x00204081u & 0x01010101u) << four;
  }
  return fours;
}
constexpr uint32_t bits_of_fours(uint32_t fours) {
  uint32_t in_order = 0;
  for (uint32_t four = 0; four < kFours; ++four) {
    const uint32_t bits = fours >> four & 0x01010101u;
    in_order |= (bits * 0x10204080u >> 28) << 4 * four;
  }
  return in_order;
}

// Returns word w of a block as kernels read it, or as GGUF has it: `stored` is the other.
template <Encoding E>
constexpr uint32_t word_from_gguf(uint32_t w, uint32_t stored) {
  if (E == Encoding::q8_0) return stored ^ 0x80808080u;
  return has_fifth_bits_in_order(E) && w == 0 ? fours_of_bits(stored) : stored;
}
template <Encoding E>
constexpr uint32_t word_to_gguf(uint32_t w, uint32_t word) {
  if (E == Encoding::q8_0) return word ^ 0x80808080u;
  return has_fifth_bits_in_order(E) && w == 0 ? bits_of_fours(word) : word;
}

template <Encoding E>
uint32_t load_word(const std::byte* block, uint32_t w) {
  uint32_t stored;
  std::memcpy(&stored, block + words_at(E) + 4 * w, sizeof stored);
  return word_from_gguf<E>(w, stored);
}
template <Encoding E>
void store_word(std::byte* block, uint32_t w, uint32_t word) {
  const uint32_t stored = word_to_gguf<E>(w, word);
  std::memcpy(block + words_at(E) + 4 * w, &stored, sizeof stored);
}

}  // namespace tierd
