// Scalar conversions between encodings and float32, in the plain order that safetensors and GGUF files use.
// They define the values; every fast path is tested against them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/model/layout/encoding.h"

namespace tierd {

float f16_to_f32(uint16_t half);
uint16_t f32_to_f16(float value);  // round to nearest even; overflow to infinity, NaN remains NaN
float bf16_to_f32(uint16_t value);
uint16_t f32_to_bf16(float value);  // round to nearest even, NaN remains NaN

// Decodes out.size() values (a multiple of block_values(e)) from `in`, which holds at least
// encoded_bytes(e, out.size()) bytes. No alignment is required of `in`.
void decode(Encoding e, std::span<const std::byte> in, std::span<float> out);

// Encodes in.size() values; blocks as encode_block does (blocks.h).
void encode(Encoding e, std::span<const float> in, std::span<std::byte> out);

// Returns the index of the first value that encoding would lose: one that is not finite, or so large that it,
// or the scale of its block, becomes infinite. `values` begin with a block.
std::optional<size_t> first_lost_value(Encoding e, std::span<const float> values);

// Returns the index of the first value that is not finite among whole blocks. A quantized block whose scale
// is not finite has only such values; the index is then that of its first value.
std::optional<size_t> first_not_finite(Encoding e, std::span<const std::byte> encoded);

}  // namespace tierd
