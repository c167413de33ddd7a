// The encodings of weights and their sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/enum_names.h"

namespace tierd {

// Numbers are part of the store's format and of the plugin ABI: never renumber. From q8_0 on these are GGUF's
// encodings of the same names, which share bytes among the values of a block (block_layout.h).
enum class Encoding : uint16_t {
  f32 = 0,
  f16 = 1,
  bf16 = 2,
  q8_0 = 3,  // blocks of 32 along a row
  q4_0 = 4,
  q4_k = 5,  // super-blocks of 256, whose scales are integers themselves
  q5_k = 6,
  q6_k = 7,
  q4_1 = 8,
  q5_0 = 9,
  q5_1 = 10,
  q2_k = 11,
  q3_k = 12,
  iq4_nl = 13,  // the integers are not evenly spaced
  iq4_xs = 14,
  mxfp4 = 15,  // Open Compute's microscaling: 4 bit floats, and powers of two for scales
};
inline constexpr std::array kAllEncodings = {
    Encoding::f32,  Encoding::f16,    Encoding::bf16,   Encoding::q8_0, Encoding::q4_0, Encoding::q4_k,
    Encoding::q5_k, Encoding::q6_k,   Encoding::q4_1,   Encoding::q5_0, Encoding::q5_1, Encoding::q2_k,
    Encoding::q3_k, Encoding::iq4_nl, Encoding::iq4_xs, Encoding::mxfp4};

inline constexpr uint32_t kQuantBlock = 32;   // values of a block; kernels add by blocks in every encoding
inline constexpr uint32_t kSuperBlock = 256;  // of K-quants and iq4_xs

constexpr std::array<std::string_view, kAllEncodings.size()> names_of(Encoding) {
  return {"f32",  "f16",  "bf16", "q8_0", "q4_0", "q4_k",   "q5_k",   "q6_k",
          "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "iq4_nl", "iq4_xs", "mxfp4"};
}

// The values that share bytes: 1 for floats, 32 or 256 for block encodings. Row lengths are a multiple.
constexpr uint32_t block_values(Encoding e) {
  switch (e) {
    case Encoding::f32:
    case Encoding::f16:
    case Encoding::bf16:
      return 1;
    case Encoding::q8_0:
    case Encoding::q4_0:
    case Encoding::q4_1:
    case Encoding::q5_0:
    case Encoding::q5_1:
    case Encoding::iq4_nl:
    case Encoding::mxfp4:
      return kQuantBlock;
    case Encoding::q4_k:
    case Encoding::q5_k:
    case Encoding::q6_k:
    case Encoding::q2_k:
    case Encoding::q3_k:
    case Encoding::iq4_xs:
      return kSuperBlock;
  }
  return 0;
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
    case Encoding::q4_1:
      return 20;
    case Encoding::q5_0:
      return 22;
    case Encoding::q5_1:
      return 24;
    case Encoding::q2_k:
      return 84;
    case Encoding::q3_k:
      return 110;
    case Encoding::iq4_nl:
      return 18;
    case Encoding::iq4_xs:
      return 136;
    case Encoding::mxfp4:
      return 17;
  }
  return 0;
}
constexpr bool is_quantized(Encoding e) {
  return block_values(e) != 1;
}
// Whether weights that are columns of their operator can have the encoding (column.h).
constexpr bool has_columns(Encoding e) {
  return !is_quantized(e) || e == Encoding::q8_0 || e == Encoding::q4_0;
}
// Bytes of `values` consecutive values; `values` is a multiple of block_values(e).
constexpr uint64_t encoded_bytes(Encoding e, uint64_t values) {
  return values / block_values(e) * block_bytes(e);
}

}  // namespace tierd
