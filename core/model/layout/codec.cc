#include "core/model/layout/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/model/layout/k_quants.h"
#include "core/model/layout/little_endian.h"

namespace tierd {
namespace {

void decode_q8_0(const std::byte* in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += kQuantBlock, in += block_bytes(Encoding::q8_0)) {
    const float d = f16_to_f32(load_u16(in));
    for (uint32_t j = 0; j < kQuantBlock; ++j) {
      out[i + j] = d * static_cast<float>(static_cast<int8_t>(in[2 + j]));
    }
  }
}

// The low nibbles of the 16 bytes are values 0..15, the high nibbles values 16..31.
void decode_q4_0(const std::byte* in, std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += kQuantBlock, in += block_bytes(Encoding::q4_0)) {
    const float d = f16_to_f32(load_u16(in));
    for (uint32_t j = 0; j < kQuantBlock / 2; ++j) {
      const auto pair = static_cast<uint8_t>(in[2 + j]);
      out[i + j] = d * static_cast<float>(static_cast<int>(pair & 15) - 8);
      out[i + j + kQuantBlock / 2] = d * static_cast<float>(static_cast<int>(pair >> 4) - 8);
    }
  }
}

float largest(std::span<const float> block) {
  float result = 0;
  for (const float x : block) {
    if (std::fabs(x) > std::fabs(result)) result = x;
  }
  return result;
}

int quantize(float x, float d, int low, int high) {
  if (d == 0) return 0;
  return std::clamp(static_cast<int>(std::lrint(x / d)), low, high);
}

void encode_q8_0(std::span<const float> in, std::byte* out) {
  for (size_t i = 0; i < in.size(); i += kQuantBlock, out += block_bytes(Encoding::q8_0)) {
    const auto block = in.subspan(i, kQuantBlock);
    const uint16_t half = f32_to_f16(std::fabs(largest(block)) / 127.0f);
    const float d = f16_to_f32(half);
    store_u16(out, half);
    for (uint32_t j = 0; j < kQuantBlock; ++j)
      out[2 + j] = static_cast<std::byte>(quantize(block[j], d, -127, 127));
  }
}

void encode_q4_0(std::span<const float> in, std::byte* out) {
  for (size_t i = 0; i < in.size(); i += kQuantBlock, out += block_bytes(Encoding::q4_0)) {
    const auto block = in.subspan(i, kQuantBlock);
    const uint16_t half = f32_to_f16(largest(block) / -8.0f);
    const float d = f16_to_f32(half);
    store_u16(out, half);
    for (uint32_t j = 0; j < kQuantBlock / 2; ++j) {
      const int low = quantize(block[j], d, -8, 7) + 8;
      const int high = quantize(block[j + kQuantBlock / 2], d, -8, 7) + 8;
      out[2 + j] = static_cast<std::byte>(low | high << 4);
    }
  }
}

}  // namespace

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
    case Encoding::q8_0:
      return decode_q8_0(in.data(), out);
    case Encoding::q4_0:
      return decode_q4_0(in.data(), out);
    case Encoding::q4_k:
    case Encoding::q5_k:
    case Encoding::q6_k:
      for (size_t i = 0; i < out.size(); i += kSuperBlock)
        decode_k_quant(e, &in[encoded_bytes(e, i)], out.subspan(i).first<kSuperBlock>());
      return;
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
    case Encoding::q8_0:
      return encode_q8_0(in, out.data());
    case Encoding::q4_0:
      return encode_q4_0(in, out.data());
    case Encoding::q4_k:
    case Encoding::q5_k:
    case Encoding::q6_k:
      for (size_t i = 0; i < in.size(); i += kSuperBlock)
        encode_k_quant(e, in.subspan(i).first<kSuperBlock>(), &out[encoded_bytes(e, i)]);
      return;
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
  constexpr size_t kLastScale = 208;  // of q6_k
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
    case Encoding::q8_0:
    case Encoding::q4_0:
      return first(half);
    case Encoding::q4_k:
    case Encoding::q5_k:
      return first([&](const std::byte* at) { return half(at) || half(at + sizeof(uint16_t)); });
    case Encoding::q6_k:
      return first([&](const std::byte* at) { return half(at + kLastScale); });
  }
  return std::nullopt;
}

}  // namespace tierd
