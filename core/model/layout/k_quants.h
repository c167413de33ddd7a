// GGUF's K-quants: super-blocks of 256 values whose blocks have integers for scales. The bytes, in their
// order:
//
//   q4_k   f16 d, f16 dmin, 12 bytes of scales, 128 of nibbles
//   q5_k   the same, with 32 bytes of fifth bits before the nibbles
//   q6_k   128 bytes of nibbles, 64 of fifth and sixth bits, 16 int8 scales, f16 d
//
// Each value is d*scale*q - dmin*min of its block, where d*scale*q and dmin*min are exact in float32: a value
// is rounded once, and fused and separate operations give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/layout/encoding.h"

namespace tierd {

// The number of values that share a scale.
constexpr uint32_t k_block_values(Encoding e) {
  return e == Encoding::q6_k ? 16 : 32;
}

// The integer scale and minimum of a block.
struct KScale {
  int scale = 0;
  int min = 0;  // 0 in q6_k
};
struct KFactors {
  float d = 0;
  float dmin = 0;
};
KFactors k_factors(Encoding e, const std::byte* super_block);
KScale k_scale(Encoding e, const std::byte* super_block, uint32_t block);
// Returns the integer of value j (0 … 255): 0 … 15, 0 … 31 or -32 … 31.
int k_quant(Encoding e, const std::byte* super_block, uint32_t j);

void decode_k_quant(Encoding e, const std::byte* super_block, std::span<float, kSuperBlock> out);

// A plain quantizer, for tests and synthetic models: each block spans its least and largest value (q6_k: its
// largest magnitude), scales are rounded to the nearest. Published files come from quantizers that search for
// the scales of least error, which make better models of the same size.
void encode_k_quant(Encoding e, std::span<const float, kSuperBlock> in, std::byte* super_block);

}  // namespace tierd
