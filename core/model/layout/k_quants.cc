#include "core/model/layout/k_quants.h"
#include "core/model/layout/little_endian.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/model/layout/codec.h"

namespace tierd {
namespace {

constexpr uint32_t kMostBlocks = 16;  // of a super-block
constexpr uint32_t kMostScale = 63;   // 6 bits
constexpr uint32_t kMostScale6 = 127;

// The offsets of a super-block's fields.
struct Fields {
  uint32_t d;
  uint32_t scales;
  uint32_t high;  // bits above the nibbles; q4_k has none
  uint32_t low;
};
constexpr uint32_t kDmin = 2;
constexpr Fields fields_of(Encoding e) {
  if (e == Encoding::q4_k) return {0, 4, 0, 16};
  if (e == Encoding::q5_k) return {0, 4, 16, 48};
  return {208, 192, 128, 0};
}

// The position of a value's bits: a byte with its nibble, and a byte with the bits above it.
struct Place {
  uint32_t low;
  uint32_t low_shift;
  uint32_t high;
  uint32_t high_shift;
};
constexpr Place place_of(Encoding e, uint32_t j) {
  const Fields at = fields_of(e);
  const uint32_t run = j / 32;  // of 32 values, whose bytes follow each other
  const uint32_t i = j % 32;
  if (e != Encoding::q6_k) return {at.low + run / 2 * 32 + i, run % 2 * 4, at.high + i, run};
  const uint32_t half = run / 4;
  const uint32_t quarter = run % 4;
  return {at.low + half * 64 + quarter % 2 * 32 + i, quarter / 2 * 4, at.high + half * 32 + i, quarter * 2};
}
constexpr uint32_t high_mask(Encoding e) {
  if (e == Encoding::q4_k) return 0;
  return e == Encoding::q5_k ? 1 : 3;
}
constexpr int offset_of(Encoding e) {
  return e == Encoding::q6_k ? 32 : 0;
}
constexpr int most_quant(Encoding e) {
  if (e == Encoding::q4_k) return 15;
  return 31;
}

uint32_t number(std::byte byte) {
  return std::to_integer<uint32_t>(byte);
}
void add_bits(std::byte& byte, uint32_t bits) {
  byte |= static_cast<std::byte>(bits);
}

// Returns the quant of the value `i` positions after the one at `place`, in the same block.
int quant_at(Encoding e, const std::byte* super_block, const Place& place, uint32_t i) {
  const uint32_t low = number(super_block[place.low + i]) >> place.low_shift & 15;
  const uint32_t high = number(super_block[place.high + i]) >> place.high_shift & high_mask(e);
  return static_cast<int>(low | high << 4) - offset_of(e);
}

void put_quant(Encoding e, std::byte* super_block, uint32_t j, int quant) {
  const auto bits = static_cast<uint32_t>(quant + offset_of(e));
  const Place place = place_of(e, j);
  add_bits(super_block[place.low], (bits & 15) << place.low_shift);
  if (e != Encoding::q4_k) add_bits(super_block[place.high], bits >> 4 << place.high_shift);
}

// Twelve bytes hold 8 scales and 8 minima of 6 bits: the first four of each have one byte each, whose top two
// bits hold the top bits of the other four; the lower bits of those share a byte.
void put_scale(Encoding e, std::byte* super_block, uint32_t block, KScale value) {
  std::byte* s = super_block + fields_of(e).scales;
  if (e == Encoding::q6_k) {
    s[block] = static_cast<std::byte>(value.scale);
    return;
  }
  const auto scale = static_cast<uint32_t>(value.scale);
  const auto min = static_cast<uint32_t>(value.min);
  if (block < 4) {
    add_bits(s[block], scale);
    add_bits(s[block + 4], min);
    return;
  }
  add_bits(s[block + 4], (scale & 15) | (min & 15) << 4);
  add_bits(s[block - 4], scale >> 4 << 6);
  add_bits(s[block], min >> 4 << 6);
}

// Returns x in steps, rounded to the nearest; 0 if step is 0.
int steps(float x, float step, int least, int most) {
  if (step == 0) return 0;
  return std::clamp(static_cast<int>(std::lrint(x / step)), least, most);
}

// The ideal steps and minima of the blocks, as floats.
struct Spans {
  std::array<float, kMostBlocks> step{};
  std::array<float, kMostBlocks> min{};
};
Spans spans_of(Encoding e, std::span<const float, kSuperBlock> in) {
  Spans spans;
  const uint32_t values = k_block_values(e);
  for (uint32_t b = 0; b < kSuperBlock / values; ++b) {
    const auto block = in.subspan(b * values, values);
    const auto [least, most] = std::ranges::minmax(block);
    if (e == Encoding::q6_k) {
      spans.step[b] = (-least > most ? least : most) / -32.0F;
    } else {
      spans.min[b] = std::max(0.0F, -least);
      spans.step[b] = (std::max(0.0F, most) + spans.min[b]) / static_cast<float>(most_quant(e));
    }
  }
  return spans;
}

float largest_magnitude(const std::array<float, kMostBlocks>& values) {
  float result = 0;
  for (const float value : values) result = std::max(result, std::fabs(value));
  return result;
}

}  // namespace

KFactors k_factors(Encoding e, const std::byte* super_block) {
  const uint32_t d = fields_of(e).d;
  return {f16_to_f32(load_u16(super_block + d)),
          e == Encoding::q6_k ? 0 : f16_to_f32(load_u16(super_block + d + kDmin))};
}

KScale k_scale(Encoding e, const std::byte* super_block, uint32_t block) {
  const std::byte* s = super_block + fields_of(e).scales;
  if (e == Encoding::q6_k) return {static_cast<int8_t>(s[block]), 0};
  uint32_t scale, min;
  if (block < 4) {
    scale = number(s[block]) & 63;
    min = number(s[block + 4]) & 63;
  } else {
    scale = (number(s[block + 4]) & 15) | number(s[block - 4]) >> 6 << 4;
    min = number(s[block + 4]) >> 4 | number(s[block]) >> 6 << 4;
  }
  return {static_cast<int>(scale), static_cast<int>(min)};
}

int k_quant(Encoding e, const std::byte* super_block, uint32_t j) {
  return quant_at(e, super_block, place_of(e, j), 0);
}

void decode_k_quant(Encoding e, const std::byte* super_block, std::span<float, kSuperBlock> out) {
  const KFactors factors = k_factors(e, super_block);
  const uint32_t values = k_block_values(e);
  for (uint32_t first = 0; first < kSuperBlock; first += values) {
    const KScale scale = k_scale(e, super_block, first / values);
    const float step = factors.d * static_cast<float>(scale.scale);
    const float min = factors.dmin * static_cast<float>(scale.min);
    const Place place = place_of(e, first);
    for (uint32_t i = 0; i < values; ++i) {
      const auto q = static_cast<float>(quant_at(e, super_block, place, i));
      out[first + i] = e == Encoding::q6_k ? step * q : step * q - min;
    }
  }
}

void encode_k_quant(Encoding e, std::span<const float, kSuperBlock> in, std::byte* super_block) {
  std::fill_n(super_block, block_bytes(e), std::byte{0});
  const Spans spans = spans_of(e, in);
  const bool has_min = e != Encoding::q6_k;
  const auto most = static_cast<int>(has_min ? kMostScale : kMostScale6);
  const uint32_t d_at = fields_of(e).d;
  store_u16(super_block + d_at, f32_to_f16(largest_magnitude(spans.step) / static_cast<float>(most)));
  if (has_min)
    store_u16(super_block + d_at + kDmin,
              f32_to_f16(largest_magnitude(spans.min) / static_cast<float>(most)));
  const KFactors factors = k_factors(e, super_block);
  const uint32_t values = k_block_values(e);
  for (uint32_t b = 0; b < kSuperBlock / values; ++b) {
    const KScale scale = {steps(spans.step[b], factors.d, -most, most),
                          steps(spans.min[b], factors.dmin, 0, most)};
    put_scale(e, super_block, b, scale);
    const float step = factors.d * static_cast<float>(scale.scale);
    const float min = factors.dmin * static_cast<float>(scale.min);
    for (uint32_t j = b * values; j < (b + 1) * values; ++j)
      put_quant(e, super_block, j, steps(in[j] + min, step, -offset_of(e), most_quant(e)));
  }
}

}  // namespace tierd
