// Encodes weights in blocks of 32, with the bits of `encode` (core/model/layout/codec.h). Included per target
// by simd.cc.
#if defined(TIERD_COMPUTE_RECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_RECODE_INL_H
#undef TIERD_COMPUTE_RECODE_INL_H
#else
#define TIERD_COMPUTE_RECODE_INL_H
#endif

#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

// Eight values at a time on every target: a block is four such vectors.
using Eight = hn::CappedTag<float, 8>;
inline constexpr uint32_t kEight = 8;
inline constexpr uint32_t kEights = kQuantBlock / kEight;

template <Encoding E>
HWY_INLINE hn::Vec<Eight> load_eight(const std::byte* in) {
  if constexpr (E == Encoding::f32) {
    return hn::LoadU(Eight(), reinterpret_cast<const float*>(in));
  } else if constexpr (E == Encoding::f16) {
    const hn::Rebind<uint16_t, Eight> u16;
    const hn::Rebind<hwy::float16_t, Eight> f16;
    return hn::PromoteTo(Eight(), hn::BitCast(f16, hn::LoadU(u16, reinterpret_cast<const uint16_t*>(in))));
  } else {
    const hn::Rebind<uint16_t, Eight> u16;
    const hn::Rebind<uint32_t, Eight> u32;
    const auto halves = hn::LoadU(u16, reinterpret_cast<const uint16_t*>(in));
    return hn::BitCast(Eight(), hn::ShiftLeft<16>(hn::PromoteTo(u32, halves)));
  }
}

// A scale in its stored bits, and its value in f32, as f32_to_f16 and f16_to_f32 convert it.
struct Half {
  uint16_t bits;
  float value;
};
HWY_INLINE Half rounded_to_half(float value) {
  const hn::CappedTag<float, 4> f32;
  const hn::Rebind<hwy::float16_t, decltype(f32)> f16;
  const hn::Rebind<uint16_t, decltype(f32)> u16;
  const auto half = hn::DemoteTo(f16, hn::Set(f32, value));
  return {hn::GetLane(hn::BitCast(u16, half)), hn::GetLane(hn::PromoteTo(f32, half))};
}

// Returns the largest magnitude, in all lanes; a NaN is ignored.
HWY_INLINE hn::Vec<Eight> magnitude_of(const hn::Vec<Eight> (&block)[kEights]) {
  const Eight d;
  auto most = hn::Zero(d);
  // Max returns its second operand if one is a NaN.
  for (const auto& values : block) most = hn::Max(hn::Abs(values), most);
  return hn::MaxOfLanes(d, most);
}

// Returns the first value of the largest magnitude; zero, if that is zero.
HWY_INLINE float largest_of(const hn::Vec<Eight> (&block)[kEights]) {
  const Eight d;
  const auto magnitude = magnitude_of(block);
  if (hn::GetLane(magnitude) == 0) return 0;
  HWY_ALIGN float values[kQuantBlock];
  uint8_t bits[kEights];
  for (uint32_t i = 0; i < kEights; ++i) {
    hn::Store(block[i], d, values + i * kEight);
    hn::StoreMaskBits(d, hn::Eq(hn::Abs(block[i]), magnitude), bits + i);
  }
  uint32_t all;
  std::memcpy(&all, bits, sizeof all);
  return values[std::countr_zero(all)];
}

// Same result as `quantize` of the codec. The bounds are integers, so that bounding may precede rounding. The
// constant that is added leaves no bits for a fraction, so that the sum is rounded to nearest even.
HWY_INLINE auto nearest_steps(hn::Vec<Eight> values, float scale, float low, float high) {
  constexpr float kNoFraction = 0x1.8p23F;
  const Eight d;
  const hn::Rebind<int32_t, Eight> i32;
  const auto divided = hn::Div(values, hn::Set(d, scale));
  const auto number = hn::IfThenZeroElse(hn::IsNaN(divided), divided);
  const auto bounded = hn::Min(hn::Max(number, hn::Set(d, low)), hn::Set(d, high));
  const auto no_fraction = hn::Set(d, kNoFraction);
  return hn::Sub(hn::BitCast(i32, hn::Add(bounded, no_fraction)), hn::BitCast(i32, no_fraction));
}

template <Encoding From>
HWY_INLINE uint16_t encode_q8_0(const std::byte* in, std::byte* quants) {
  const hn::Rebind<int8_t, Eight> i8;
  hn::Vec<Eight> block[kEights];
  for (uint32_t i = 0; i < kEights; ++i) block[i] = load_eight<From>(in + i * kEight * block_bytes(From));
  const Half scale = rounded_to_half(hn::GetLane(magnitude_of(block)) / 127.0f);
  if (scale.value == 0) {
    std::memset(quants, 0, kQuantBlock);
    return scale.bits;
  }
  for (uint32_t i = 0; i < kEights; ++i) {
    hn::StoreU(hn::DemoteTo(i8, nearest_steps(block[i], scale.value, -127, 127)), i8,
               reinterpret_cast<int8_t*>(quants) + i * kEight);
  }
  return scale.bits;
}

template <Encoding From>
HWY_INLINE uint16_t encode_q4_0(const std::byte* in, std::byte* quants) {
  const hn::Rebind<int32_t, Eight> i32;
  const hn::Rebind<uint8_t, Eight> u8;
  hn::Vec<Eight> block[kEights];
  for (uint32_t i = 0; i < kEights; ++i) block[i] = load_eight<From>(in + i * kEight * block_bytes(From));
  const Half scale = rounded_to_half(largest_of(block) / -8.0f);
  if (scale.value == 0) {
    std::memset(quants, 0x88, kQuantBlock / 2);
    return scale.bits;
  }
  const auto eight = hn::Set(i32, 8);
  for (uint32_t i = 0; i < kEights / 2; ++i) {
    const auto low = hn::Add(nearest_steps(block[i], scale.value, -8, 7), eight);
    const auto high = hn::Add(nearest_steps(block[i + kEights / 2], scale.value, -8, 7), eight);
    hn::StoreU(hn::DemoteTo(u8, hn::Or(low, hn::ShiftLeft<4>(high))), u8,
               reinterpret_cast<uint8_t*>(quants) + i * kEight);
  }
  return scale.bits;
}

template <Encoding From, Encoding To>
HWY_NOINLINE void encode_blocks_of(const std::byte* in, uint32_t blocks, const BlockPlaces& out) {
  for (uint32_t b = 0; b < blocks; ++b, in += kQuantBlock * block_bytes(From)) {
    std::byte* const quants = out.quants + b * out.quants_apart;
    const uint16_t scale =
        To == Encoding::q8_0 ? encode_q8_0<From>(in, quants) : encode_q4_0<From>(in, quants);
    std::memcpy(out.scales + b * out.scales_apart, &scale, sizeof scale);
  }
}

template <Encoding From>
void encode_blocks_of(const std::byte* in, uint32_t blocks, Encoding to, const BlockPlaces& out) {
  if (to == Encoding::q8_0) return encode_blocks_of<From, Encoding::q8_0>(in, blocks, out);
  TIERD_CHECK(to == Encoding::q4_0);
  encode_blocks_of<From, Encoding::q4_0>(in, blocks, out);
}

void encode_blocks(Encoding from, const std::byte* in, uint32_t blocks, Encoding to, const BlockPlaces& out) {
  switch (from) {
    case Encoding::f32:
      return encode_blocks_of<Encoding::f32>(in, blocks, to, out);
    case Encoding::f16:
      return encode_blocks_of<Encoding::f16>(in, blocks, to, out);
    default:
      TIERD_CHECK(from == Encoding::bf16);
      return encode_blocks_of<Encoding::bf16>(in, blocks, to, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
