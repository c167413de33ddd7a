#include "core/model/layout/blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/base/check.h"
#include "core/model/layout/block_layout.h"
#include "core/model/layout/block_words.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/for_encoding.h"
#include "core/model/layout/little_endian.h"

namespace tierd {
namespace {

constexpr uint32_t kMostScales = 16;     // of a block
constexpr float kLargestOfTable = -127;  // iq4

constexpr uint32_t mask(uint32_t width) {
  return (1u << width) - 1;
}

// The factors of a block as floats; the second of iq4_xs is no float, and 0 here.
struct Factors {
  float d = 0;
  float second = 0;
};
template <Encoding E>
Factors factors_of(const std::byte* block) {
  const std::byte* at = block + factors_at(E);
  if constexpr (E == Encoding::mxfp4) {
    // Half of the power, since the table has doubled values: 2^(exponent - 128), the least two subnormal.
    const auto exponent = std::to_integer<uint32_t>(*at);
    return {std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23)};
  } else {
    return {f16_to_f32(load_u16(at)), has_min(E) ? f16_to_f32(load_u16(at + 2)) : 0};
  }
}

template <Encoding E>
uint32_t field(const std::byte* block, Bits bits, uint32_t width) {
  const uint32_t word =
      bits.word == kSecondFactor ? load_u16(block + factors_at(E) + 2) : load_word<E>(block, bits.word);
  return word >> bits.shift & mask(width);
}
template <Encoding E>
int integer(const std::byte* block, const ScaleBits& at) {
  uint32_t value = field<E>(block, at.low, at.low_width);
  if (at.high_width != 0) value |= field<E>(block, at.high, at.high_width) << at.low_width;
  return static_cast<int>(value ^ at.flip) - at.offset;
}

// Returns the parts that scale number i gives.
template <Encoding E>
StepAndMin step_of(const std::byte* block, const Factors& factors, uint32_t i) {
  if constexpr (has_scales(E)) {
    const auto scale = static_cast<float>(integer<E>(block, scale_bits(E, i)));
    float min = 0;
    if constexpr (has_min(E)) min = factors.second * static_cast<float>(integer<E>(block, min_bits(E, i)));
    return {factors.d * scale, min};
  } else {
    return {factors.d, -factors.second};
  }
}

template <Encoding E>
constexpr auto kEntries = code_entries(E);

template <Encoding E>
int value_of_code(uint32_t code) {
  return static_cast<int>(code_width(E) > 4 ? code : kEntries<E>[code]) - code_offset(E);
}

// Returns the codes of four columns, a byte each.
template <Encoding E>
uint32_t codes_of(const std::byte* block, uint32_t run, uint32_t four) {
  constexpr uint32_t kEach = 0x01010101u;
  const Bits low = low_bits(E, run, four);
  uint32_t codes = load_word<E>(block, low.word) >> low.shift & mask(low_width(E)) * kEach;
  if constexpr (high_width(E) != 0) {
    const Bits high = high_bits(E, run, four);
    codes |= (load_word<E>(block, high.word) >> high.shift & mask(high_width(E)) * kEach) << low_width(E);
  }
  return codes;
}

template <Encoding E>
void decode_block(const std::byte* block, float* out) {
  const Factors factors = factors_of<E>(block);
  constexpr uint32_t kScaledFours = scaled_values(E) / 4;
  for (uint32_t i = 0; i < block_values(E) / scaled_values(E); ++i) {
    const auto [step, min] = step_of<E>(block, factors, i);
    for (uint32_t f = i * kScaledFours; f < (i + 1) * kScaledFours; ++f) {
      const uint32_t codes = codes_of<E>(block, f / kFours, f % kFours);
      for (uint32_t k = 0; k < 4; ++k) {
        const auto value = static_cast<float>(value_of_code<E>(codes >> 8 * k & 255));
        *out++ = has_min(E) ? step * value - min : step * value;
      }
    }
  }
}

// Returns x in steps, rounded to the nearest; 0 if step is 0.
int steps(float x, float step, int least, int most) {
  if (step == 0) return 0;
  return std::clamp(static_cast<int>(std::lrint(x / step)), least, most);
}

float largest(std::span<const float> values) {
  float result = 0;
  for (const float x : values) {
    if (std::fabs(x) > std::fabs(result)) result = x;
  }
  return result;
}

// The largest magnitude of an integer scale.
constexpr int most_scale(Encoding e) {
  const ScaleBits bits = scale_bits(e, 0);
  return static_cast<int>(mask(bits.low_width + bits.high_width)) - bits.offset;
}

// The step and the minimum that suit some values best.
StepAndMin ideal_step(Encoding e, std::span<const float> values) {
  if (has_min(e)) {
    auto [least, most] = std::ranges::minmax(values);
    if (has_scales(e)) least = std::min(0.0F, least), most = std::max(0.0F, most);  // dmin * min is positive
    return {(most - least) / static_cast<float>(mask(code_width(e))), -least};
  }
  const float top = largest(values);
  if (e == Encoding::q8_0) return {std::fabs(top) / 127.0F};
  if (e == Encoding::mxfp4) {  // 6 is its largest value; the table has twice that
    const float exponent = top == 0 ? -126 : std::floor(std::log2(std::fabs(top))) - 3;
    return {std::exp2(std::clamp(exponent, -128.0F, 124.0F))};
  }
  return {top / (has_table(e) ? kLargestOfTable : -static_cast<float>(code_offset(e)))};
}

// Returns the code of x, given in steps.
template <Encoding E>
uint32_t code_of(float x, float step) {
  if constexpr (has_table(E)) {
    const float in_steps = step == 0 ? 0 : x / step;
    uint32_t best = 0;
    const auto error = [&](uint32_t code) {
      return std::fabs(static_cast<float>(value_of_code<E>(code)) - in_steps);
    };
    for (uint32_t code = 1; code < 16; ++code) {
      if (error(code) < error(best)) best = code;
    }
    return best;
  } else {
    constexpr int kOffset = code_offset(E);
    constexpr int kMost = static_cast<int>(mask(code_width(E))) - kOffset;
    return static_cast<uint32_t>(steps(x, step, E == Encoding::q8_0 ? -kMost : -kOffset, kMost) + kOffset);
  }
}

template <Encoding E>
void store_factors(const StepAndMin& factors, std::byte* block) {
  std::byte* at = block + factors_at(E);
  if constexpr (E == Encoding::mxfp4) {
    *at = static_cast<std::byte>(std::ilogb(factors.step) + 128);
  } else {
    store_u16(at, f32_to_f16(factors.step));
    if constexpr (has_min(E)) store_u16(at + 2, f32_to_f16(has_scales(E) ? factors.min : -factors.min));
  }
}

template <Encoding E>
void add_bits(std::byte* block, uint32_t word, uint32_t bits) {
  if (word == kSecondFactor) {
    std::byte* at = block + factors_at(E) + 2;
    return store_u16(at, static_cast<uint16_t>(load_u16(at) | bits));
  }
  store_word<E>(block, word, load_word<E>(block, word) | bits);
}
template <Encoding E>
void put_integer(std::byte* block, const ScaleBits& at, int value) {
  const uint32_t bits = static_cast<uint32_t>(value + at.offset) ^ at.flip;
  add_bits<E>(block, at.low.word, (bits & mask(at.low_width)) << at.low.shift);
  if (at.high_width != 0) add_bits<E>(block, at.high.word, bits >> at.low_width << at.high.shift);
}
template <Encoding E>
void put_code(std::byte* block, uint32_t j, uint32_t code) {
  const uint32_t byte = j % 4 * 8;
  const Bits low = low_bits(E, j / kQuantBlock, j % kQuantBlock / 4);
  add_bits<E>(block, low.word, (code & mask(low_width(E))) << (low.shift + byte));
  if constexpr (high_width(E) != 0) {
    const Bits high = high_bits(E, j / kQuantBlock, j % kQuantBlock / 4);
    add_bits<E>(block, high.word, code >> low_width(E) << (high.shift + byte));
  }
}

template <Encoding E>
void encode_block_of(std::span<const float> in, std::byte* block) {
  for (uint32_t i = 0; i < block_bytes(E); ++i) block[i] = std::byte{0};
  for (uint32_t w = 0; w < words_of_block(E); ++w) store_word<E>(block, w, 0);
  constexpr uint32_t kValues = scaled_values(E);
  constexpr uint32_t kScales = block_values(E) / kValues;
  std::array<StepAndMin, kMostScales> ideal;
  for (uint32_t i = 0; i < kScales; ++i) ideal[i] = ideal_step(E, in.subspan(i * kValues, kValues));
  if constexpr (has_scales(E)) {
    StepAndMin most;
    for (const StepAndMin& of_scale : std::span(ideal).first(kScales)) {
      most.step = std::max(most.step, std::fabs(of_scale.step));
      most.min = std::max(most.min, of_scale.min);
    }
    constexpr auto kMost = static_cast<float>(most_scale(E));
    store_factors<E>({most.step / kMost, most.min / kMost}, block);
  } else {
    store_factors<E>(ideal[0], block);
  }
  const Factors factors = factors_of<E>(block);
  for (uint32_t i = 0; i < kScales; ++i) {
    if constexpr (has_scales(E)) {
      constexpr int kMost = most_scale(E);
      put_integer<E>(block, scale_bits(E, i), steps(ideal[i].step, factors.d, -kMost, kMost));
      if constexpr (has_min(E))
        put_integer<E>(block, min_bits(E, i), steps(ideal[i].min, factors.second, 0, kMost));
    }
    const auto [step, min] = step_of<E>(block, factors, i);
    for (uint32_t j = i * kValues; j < (i + 1) * kValues; ++j)
      put_code<E>(block, j, code_of<E>(has_min(E) ? in[j] + min : in[j], step));
  }
}

// Calls `call` with the constant of a block encoding.
template <class Call>
decltype(auto) for_blocks(Encoding e, const Call& call) {
  return for_encoding(e, [&](auto encoding) -> decltype(call(EncodingConstant<Encoding::q8_0>())) {
    if constexpr (is_quantized(encoding)) return call(encoding);
    TIERD_CHECK_MSG(false, name(encoding()));
  });
}

}  // namespace

void decode_blocks(Encoding e, const std::byte* blocks, std::span<float> out) {
  TIERD_CHECK(out.size() % block_values(e) == 0);
  for_blocks(e, [&](auto encoding) {
    const std::byte* block = blocks;
    for (size_t i = 0; i < out.size(); i += block_values(encoding), block += block_bytes(encoding))
      decode_block<encoding>(block, &out[i]);
  });
}

int value_in_block(Encoding e, const std::byte* block, uint32_t j) {
  return for_blocks(e, [&](auto encoding) {
    const uint32_t codes = codes_of<encoding>(block, j / kQuantBlock, j % kQuantBlock / 4);
    return value_of_code<encoding>(codes >> j % 4 * 8 & 255);
  });
}

StepAndMin step_in_block(Encoding e, const std::byte* block, uint32_t j) {
  return for_blocks(e, [&](auto encoding) {
    return step_of<encoding>(block, factors_of<encoding>(block), j / scaled_values(encoding));
  });
}

void encode_block(Encoding e, std::span<const float> in, std::byte* block) {
  TIERD_CHECK(in.size() == block_values(e));
  for_blocks(e, [&](auto encoding) { encode_block_of<encoding>(in, block); });
}

bool has_infinite_factor(Encoding e, const std::byte* block) {
  const std::byte* at = block + factors_at(e);
  constexpr uint32_t kLargestExponent = 252;  // 12 * 2^124 is a float, 12 * 2^125 is not
  if (e == Encoding::mxfp4) return std::to_integer<uint32_t>(*at) > kLargestExponent;
  const auto infinite = [](const std::byte* half) { return (load_u16(half) & 0x7c00) == 0x7c00; };
  return infinite(at) || (has_min(e) && infinite(at + 2));
}

}  // namespace tierd
