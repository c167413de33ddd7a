// Where the bits of a block encoding are. Codec, row groups and kernels all follow from this description.
//
// A weight is `step * (code - offset) - min`, rounded once to f32. Its *code* is a small unsigned integer, in
// iq4 and mxfp4 the number of a table's entry; 32 or 16 consecutive values share `step` and `min`. A block
// begins or ends with *factors*; its other bytes are *words* of four bytes. 32 values are a *run*, and each
// word of bits holds the same bits of four columns, one in each byte, so that with some shift it is *four*
// codes side by side. The exceptions, which `words_of` removes:
//
//   q8_0        stores signed bytes; its words have code = value + 128
//   q5_0, q5_1  have the fifth bits of 32 columns in their order; in the word, byte k has those of columns k,
//               4 + k, 8 + k …
//
//            a block's bytes, in GGUF's order
//   q8_0     f16 d, 32 values                           q4_k   f16 d, f16 dmin, 12 of scales, 128 of nibbles
//   q4_0     f16 d, 16 of nibbles                       q5_k   the same, 32 of fifth bits before the nibbles
//   q4_1     f16 d, f16 m, 16 of nibbles                q6_k   128 of nibbles, 64 of high bits, 16 scales,
//   f16 d q5_0     f16 d, 4 of fifth bits, 16 of nibbles      q2_k   16 of scales, 64 of two bits, f16 d, f16
//   dmin q5_1     f16 d, f16 m, 4 of fifth bits, nibbles     q3_k   32 of third bits, 64 of two, 12 of
//   scales, f16 d iq4_nl   f16 d, 16 of nibbles                       iq4_xs f16 d, u16 and 4 of scales, 128
//   of nibbles mxfp4    1 of an exponent, 16 of nibbles
#pragma once

#include <array>
#include <cstdint>

#include "core/model/layout/encoding.h"

namespace tierd {

inline constexpr uint32_t kFours = 8;       // of a run
inline constexpr uint32_t kMostWords = 52;  // of q6_k

// The factors of a block: their bytes and their offset in GGUF's order. f16, but one byte for mxfp4.
constexpr uint32_t factor_bytes(Encoding e) {
  switch (e) {
    case Encoding::q4_1:
    case Encoding::q5_1:
    case Encoding::q4_k:
    case Encoding::q5_k:
    case Encoding::q2_k:
    case Encoding::iq4_xs:
      return 4;
    case Encoding::mxfp4:
      return 1;
    default:
      return 2;
  }
}
constexpr uint32_t factors_at(Encoding e) {
  const bool are_last = e == Encoding::q6_k || e == Encoding::q2_k || e == Encoding::q3_k;
  return are_last ? block_bytes(e) - factor_bytes(e) : 0;
}
constexpr uint32_t words_at(Encoding e) {
  return factors_at(e) == 0 ? factor_bytes(e) : 0;
}
constexpr uint32_t words_of_block(Encoding e) {
  return (block_bytes(e) - factor_bytes(e)) / 4;
}
// Whether the second factor is multiplied with minima (K-quants), or is added as it is (q4_1, q5_1).
constexpr bool has_min(Encoding e) {
  return factor_bytes(e) == 4 && e != Encoding::iq4_xs;
}

constexpr uint32_t runs_of(Encoding e) {
  return block_values(e) / kQuantBlock;
}
// The values that share a step: a run or half of it.
constexpr uint32_t scaled_values(Encoding e) {
  return e == Encoding::q6_k || e == Encoding::q2_k || e == Encoding::q3_k ? 16 : 32;
}

// Bits of a word, the same in each of its bytes for codes.
struct Bits {
  uint32_t word;
  uint32_t shift;
};

// The low bits of codes: how many, and where those of a run's columns 4*four … 4*four + 3 are.
constexpr uint32_t low_width(Encoding e) {
  if (e == Encoding::q8_0) return 8;
  return e == Encoding::q2_k || e == Encoding::q3_k ? 2 : 4;
}
constexpr Bits low_bits(Encoding e, uint32_t run, uint32_t four) {
  switch (e) {
    case Encoding::q4_k:
      return {3 + run / 2 * kFours + four, run % 2 * 4};
    case Encoding::q5_k:
      return {11 + run / 2 * kFours + four, run % 2 * 4};
    case Encoding::q6_k:
      return {run / 4 * 16 + run % 2 * kFours + four, run % 4 / 2 * 4};
    case Encoding::q2_k:
      return {4 + run / 4 * kFours + four, run % 4 * 2};
    case Encoding::q3_k:
      return {8 + run / 4 * kFours + four, run % 4 * 2};
    case Encoding::q8_0:
      return {four, 0};
    case Encoding::q5_0:
    case Encoding::q5_1:
    case Encoding::iq4_xs:
      return {1 + run * 4 + four % 4, four / 4 * 4};
    default:
      return {four % 4, four / 4 * 4};
  }
}
// The bits above them, if any.
constexpr uint32_t high_width(Encoding e) {
  if (e == Encoding::q6_k) return 2;
  return e == Encoding::q5_0 || e == Encoding::q5_1 || e == Encoding::q5_k || e == Encoding::q3_k ? 1 : 0;
}
constexpr Bits high_bits(Encoding e, uint32_t run, uint32_t four) {
  if (e == Encoding::q5_k) return {3 + four, run};
  if (e == Encoding::q3_k) return {four, run};
  if (e == Encoding::q6_k) return {32 + run / 4 * kFours + four, run % 4 * 2};
  return {0, four};
}
constexpr uint32_t code_width(Encoding e) {
  return low_width(e) + high_width(e);
}
constexpr bool has_fifth_bits_in_order(Encoding e) {
  return e == Encoding::q5_0 || e == Encoding::q5_1;
}

// The value of a code is its entry less this offset; without a table the code is the entry.
constexpr bool has_table(Encoding e) {
  return e == Encoding::iq4_nl || e == Encoding::iq4_xs || e == Encoding::mxfp4;
}
constexpr int code_offset(Encoding e) {
  switch (e) {
    case Encoding::q8_0:
    case Encoding::iq4_nl:
    case Encoding::iq4_xs:
      return 128;
    case Encoding::q6_k:
      return 32;
    case Encoding::q5_0:
      return 16;
    case Encoding::mxfp4:
      return 12;
    case Encoding::q4_0:
      return 8;
    case Encoding::q3_k:
      return 4;
    default:
      return 0;
  }
}
// The entry of each code of at most four bits; numbers beyond the codes repeat them.
constexpr std::array<uint8_t, 16> code_entries(Encoding e) {
  if (e == Encoding::mxfp4)  // twice 0, 0.5, 1, 1.5, 2, 3, 4, 6, then negative
    return {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  if (has_table(e)) return {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
  std::array<uint8_t, 16> entries{};
  for (uint32_t code = 0; code < 16; ++code)
    entries[code] = static_cast<uint8_t>(code & ((1u << code_width(e)) - 1));
  return entries;
}

// The integer scale of 16 or 32 values, if any: `low` has low_width bits, above them follow those of `high`.
// Xored with `flip`, then less `offset`, this is the factor of d.
struct ScaleBits {
  Bits low;
  uint32_t low_width;
  Bits high = {0, 0};
  uint32_t high_width = 0;
  uint32_t flip = 0;
  int offset = 0;
};
inline constexpr uint32_t kSecondFactor = ~0u;  // for a word: the 16 bits behind d

constexpr bool has_scales(Encoding e) {
  return block_values(e) == kSuperBlock;
}
// The words that contain them, but for kSecondFactor.
struct WordRange {
  uint32_t first;
  uint32_t count;
};
constexpr WordRange scale_words(Encoding e) {
  switch (e) {
    case Encoding::q4_k:
    case Encoding::q5_k:
      return {0, 3};
    case Encoding::q6_k:
      return {48, 4};
    case Encoding::q2_k:
      return {0, 4};
    case Encoding::q3_k:
      return {24, 3};
    case Encoding::iq4_xs:
      return {0, 1};
    default:
      return {0, 0};
  }
}
// Scale number i of a super-block.
constexpr ScaleBits scale_bits(Encoding e, uint32_t i) {
  const uint32_t byte = i % 4 * 8;
  switch (e) {
    case Encoding::q6_k:
      return {.low = {48 + i / 4, byte}, .low_width = 8, .flip = 128, .offset = 128};  // signed
    case Encoding::q2_k:
      return {.low = {i / 4, byte}, .low_width = 4};
    case Encoding::q3_k:
      return {.low = {24 + i % 8 / 4, byte + i / 8 * 4},
              .low_width = 4,
              .high = {26, byte + i / 4 * 2},
              .high_width = 2,
              .offset = 32};
    case Encoding::iq4_xs:
      return {
          .low = {0, i * 4}, .low_width = 4, .high = {kSecondFactor, i * 2}, .high_width = 2, .offset = 32};
    default:  // q4_k and q5_k
      if (i < 4) return {.low = {0, byte}, .low_width = 6};
      return {.low = {2, byte}, .low_width = 4, .high = {0, byte + 6}, .high_width = 2};
  }
}
// The same for the integer by which dmin is multiplied.
constexpr ScaleBits min_bits(Encoding e, uint32_t i) {
  const uint32_t byte = i % 4 * 8;
  if (e == Encoding::q2_k) return {.low = {i / 4, byte + 4}, .low_width = 4};
  if (i < 4) return {.low = {1, byte}, .low_width = 6};
  return {.low = {2, byte + 4}, .low_width = 4, .high = {1, byte + 6}, .high_width = 2};
}

}  // namespace tierd
