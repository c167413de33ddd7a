// The layout of a K-quant in a super-block of 16 rows (core/model/layout/row_group.h): factors first, then
// chunks of 64 bytes. A *run* is 32 columns; run r of a super-block has 8 chunks of nibbles, four columns
// each. Private to tiers/compute.
#pragma once

#include <cstdint>

#include "core/model/layout/encoding.h"
#include "core/model/layout/row_group.h"

namespace tierd {

template <Encoding E>
struct KChunks {
  static_assert(is_k_quant(E));
  static constexpr bool kHasMin = E != Encoding::q6_k;
  static constexpr uint32_t kBytes = kGroupRows * block_bytes(E);

  // Bytes of d, and of dmin behind it, of 16 rows.
  static constexpr uint32_t kFactorBytes = kGroupRows * 2;
  static constexpr uint32_t kFirstChunk = (kHasMin ? 2 : 1) * kFactorBytes;
  // The first chunk of each field.
  static constexpr uint32_t kScales = kHasMin ? 0 : 48;
  static constexpr uint32_t kHigh = kHasMin ? 3 : 32;
  static constexpr uint32_t kLow = kHasMin ? (E == Encoding::q4_k ? 3 : 11) : 0;

  // Chunk c (0 … 7) of run r, and the position of its nibbles in the bytes.
  static constexpr uint32_t low(uint32_t r, uint32_t c) {
    return kLow + (kHasMin ? r / 2 * 8 : r / 4 * 16 + r % 2 * 8) + c;
  }
  static constexpr uint32_t low_shift(uint32_t r) { return kHasMin ? r % 2 * 4 : r % 4 / 2 * 4; }
  // The same for the bits above the nibbles, which q4_k does not have.
  static constexpr bool kHasHigh = E != Encoding::q4_k;
  static constexpr uint32_t kHighMask = E == Encoding::q5_k ? 1 : 3;
  static constexpr uint32_t high(uint32_t r, uint32_t c) { return kHigh + (kHasMin ? 0 : r / 4 * 8) + c; }
  static constexpr uint32_t high_shift(uint32_t r) { return kHasMin ? r : r % 4 * 2; }
};

}  // namespace tierd
