// The encodings of weights and their sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/enum_names.h"

namespace tierd {

// Numbers are part of the store's format and of the plugin ABI: never renumber.
enum class Encoding : uint16_t {
  f32 = 0,
  f16 = 1,
  bf16 = 2,
  q8_0 = 3,  // blocks of 32 along a row: f16 scale d, 32 x int8 q; value = d*q        (GGUF's Q8_0)
  q4_0 = 4,  // blocks of 32 along a row: f16 scale d, 32 x 4 bit q; value = d*(q - 8)  (GGUF's Q4_0)
  // Super-blocks of 256 along a row, whose scales are integers themselves (k_quants.h):
  q4_k = 5,  // f16 d and dmin, 8 blocks of 32: 6 bit s and m, 4 bit q; value = d*s*q - dmin*m  (GGUF's Q4_K)
  q5_k = 6,  // the same with 5 bit q                                                           (GGUF's Q5_K)
  q6_k = 7,  // f16 d, 16 blocks of 16: int8 s, 6 bit q; value = d*s*(q - 32)                   (GGUF's Q6_K)
};
inline constexpr std::array kAllEncodings = {Encoding::f32,  Encoding::f16,  Encoding::bf16, Encoding::q8_0,
                                             Encoding::q4_0, Encoding::q4_k, Encoding::q5_k, Encoding::q6_k};

inline constexpr uint32_t kQuantBlock = 32;   // values of a block; kernels add by blocks in every encoding
inline constexpr uint32_t kSuperBlock = 256;  // of a K-quant

constexpr std::array<std::string_view, kAllEncodings.size()> names_of(Encoding) {
  return {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"};
}

constexpr bool is_k_quant(Encoding e) {
  return e == Encoding::q4_k || e == Encoding::q5_k || e == Encoding::q6_k;
}
// The values that share bytes: 1 for floats, 32 or 256 for block encodings. Row lengths are a multiple.
constexpr uint32_t block_values(Encoding e) {
  if (is_k_quant(e)) return kSuperBlock;
  return e == Encoding::q8_0 || e == Encoding::q4_0 ? kQuantBlock : 1;
}
// Bytes of one such block.
constexpr uint32_t block_bytes(Encoding e) {
  switch (e) {
    case Encoding::f32:
      return 4;
    case Encoding::f16:
    case Encoding::bf16:
      return 2;
    case Encoding::q8_0:
      return 34;
    case Encoding::q4_0:
      return 18;
    case Encoding::q4_k:
      return 144;
    case Encoding::q5_k:
      return 176;
    case Encoding::q6_k:
      return 210;
  }
  return 0;
}
constexpr bool is_quantized(Encoding e) {
  return block_values(e) != 1;
}
// Bytes of `values` consecutive values; `values` is a multiple of block_values(e).
constexpr uint64_t encoded_bytes(Encoding e, uint64_t values) {
  return values / block_values(e) * block_bytes(e);
}

}  // namespace tierd
