#include "core/model/layout/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/model/layout/blocks.h"
#include "core/model/layout/little_endian.h"

namespace tierd {

float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero and subnormals, exact
  return sign != 0 ? -magnitude : magnitude;
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past 65504
  if (magnitude < 0x38800000u) {                                               // subnormal half
    // Adding 0.5 aligns the mantissa so that the float adder does the rounding to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float bf16_to_f32(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

void decode(Encoding e, std::span<const std::byte> in, std::span<float> out) {
  TIERD_CHECK(out.size() % block_values(e) == 0 && in.size() >= encoded_bytes(e, out.size()));
  switch (e) {
    case Encoding::f32:
      if (!out.empty()) std::memcpy(out.data(), in.data(), out.size_bytes());
      return;
    case Encoding::f16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = f16_to_f32(load_u16(&in[2 * i]));
      return;
    case Encoding::bf16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = bf16_to_f32(load_u16(&in[2 * i]));
      return;
    default:
      decode_blocks(e, in.data(), out);
  }
}

void encode(Encoding e, std::span<const float> in, std::span<std::byte> out) {
  TIERD_CHECK(in.size() % block_values(e) == 0 && out.size() >= encoded_bytes(e, in.size()));
  switch (e) {
    case Encoding::f32:
      if (!in.empty()) std::memcpy(out.data(), in.data(), in.size_bytes());
      return;
    case Encoding::f16:
      for (size_t i = 0; i < in.size(); ++i) store_u16(&out[2 * i], f32_to_f16(in[i]));
      return;
    case Encoding::bf16:
      for (size_t i = 0; i < in.size(); ++i) store_u16(&out[2 * i], f32_to_bf16(in[i]));
      return;
    default:
      for (size_t i = 0; i < in.size(); i += block_values(e))
        encode_block(e, in.subspan(i, block_values(e)), &out[encoded_bytes(e, i)]);
  }
}

std::optional<size_t> first_lost_value(Encoding e, std::span<const float> values) {
  // Up to this magnitude neither a 16-bit value overflows nor a scale, which is no larger than the values.
  constexpr float kAlwaysHeld = 65504;
  const auto held = [](float value) { return std::fabs(value) <= kAlwaysHeld; };  // false for NaN
  if (std::ranges::all_of(values, held)) return std::nullopt;
  const size_t block = block_values(e);
  std::vector<std::byte> encoded(block_bytes(e));
  std::vector<float> decoded(block);
  const auto finite = [](float value) { return std::isfinite(value); };
  for (size_t first = 0; first < values.size(); first += block) {
    const auto of_block = values.subspan(first, block);
    if (std::ranges::all_of(of_block, held)) continue;
    const auto bad = std::ranges::find_if_not(of_block, finite);
    if (bad != of_block.end()) return first + static_cast<size_t>(bad - of_block.begin());
    encode(e, of_block, encoded);
    decode(e, encoded, decoded);
    if (std::ranges::all_of(decoded, finite)) continue;
    const auto most = std::ranges::max_element(of_block, {}, [](float value) { return std::fabs(value); });
    return first + static_cast<size_t>(most - of_block.begin());
  }
  return std::nullopt;
}

std::optional<size_t> first_not_finite(Encoding e, std::span<const std::byte> encoded) {
  constexpr uint16_t kHalf = 0x7c00, kBrain = 0x7f80;  // exponents of values that are not finite
  constexpr uint32_t kFloat = 0x7f800000;
  const auto half = [](const std::byte* at) { return (load_u16(at) & kHalf) == kHalf; };
  const auto first = [&](const auto& is_bad) -> std::optional<size_t> {
    const size_t bytes = block_bytes(e);
    for (size_t at = 0; at < encoded.size(); at += bytes) {
      if (is_bad(&encoded[at])) return at / bytes * block_values(e);
    }
    return std::nullopt;
  };
  switch (e) {
    case Encoding::f32:
      return first([&](const std::byte* at) {
        uint32_t bits = 0;
        std::memcpy(&bits, at, sizeof bits);
        return (bits & kFloat) == kFloat;
      });
    case Encoding::bf16:
      return first([&](const std::byte* at) { return (load_u16(at) & kBrain) == kBrain; });
    case Encoding::f16:
      return first(half);
    default:
      return first([&](const std::byte* at) { return has_infinite_factor(e, at); });
  }
}

}  // namespace tierd
