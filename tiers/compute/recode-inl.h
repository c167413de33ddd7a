// Weights that are encoded anew in blocks of 32, with the bits of `encode` (core/layout/codec.h). Included
// once per target by simd.cc.
#if defined(TIERD_COMPUTE_RECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_RECODE_INL_H
#undef TIERD_COMPUTE_RECODE_INL_H
#else
#define TIERD_COMPUTE_RECODE_INL_H
#endif

#include <cmath>
#include <cstring>

#include "core/base/check.h"
#include "core/layout/codec.h"
#include "tiers/compute/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

// Eight values at a time, whatever the target: a block is four such vectors.
using Eight = hn::FixedTag<float, 8>;
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

// The value of largest magnitude, of several the first; a NaN is none, and where nothing is larger than zero
// it is zero.
HWY_INLINE float largest_of(const hn::Vec<Eight> (&block)[kEights]) {
  const Eight d;
  auto most = hn::Zero(d);
  // Max is its second operand where one is no number.
  for (const auto& values : block) most = hn::Max(hn::Abs(values), most);
  const auto magnitude = hn::MaxOfLanes(d, most);
  if (hn::GetLane(magnitude) == 0) return 0;
  for (const auto& values : block) {
    const intptr_t lane = hn::FindFirstTrue(d, hn::Eq(hn::Abs(values), magnitude));
    if (lane < 0) continue;
    HWY_ALIGN float lanes[kEight];
    hn::Store(values, d, lanes);
    return lanes[lane];
  }
  return 0;
}

// As `quantize` of the codec, whose bounds are integers: it does not matter which comes first, bounding or
// rounding.
HWY_INLINE auto nearest_steps(hn::Vec<Eight> values, float scale, float low, float high) {
  const Eight d;
  const auto divided = hn::Div(values, hn::Set(d, scale));
  const auto number = hn::IfThenZeroElse(hn::IsNaN(divided), divided);
  return hn::NearestInt(hn::Min(hn::Max(number, hn::Set(d, low)), hn::Set(d, high)));
}

template <Encoding From>
HWY_INLINE uint16_t encode_q8_0(const std::byte* in, std::byte* quants) {
  const hn::Rebind<int8_t, Eight> i8;
  hn::Vec<Eight> block[kEights];
  for (uint32_t i = 0; i < kEights; ++i) block[i] = load_eight<From>(in + i * kEight * block_bytes(From));
  const uint16_t half = tierd::f32_to_f16(std::fabs(largest_of(block)) / 127.0f);
  const float scale = tierd::f16_to_f32(half);
  if (scale == 0) {
    std::memset(quants, 0, kQuantBlock);
    return half;
  }
  for (uint32_t i = 0; i < kEights; ++i) {
    hn::StoreU(hn::DemoteTo(i8, nearest_steps(block[i], scale, -127, 127)), i8,
               reinterpret_cast<int8_t*>(quants) + i * kEight);
  }
  return half;
}

template <Encoding From>
HWY_INLINE uint16_t encode_q4_0(const std::byte* in, std::byte* quants) {
  const hn::Rebind<int32_t, Eight> i32;
  const hn::Rebind<uint8_t, Eight> u8;
  hn::Vec<Eight> block[kEights];
  for (uint32_t i = 0; i < kEights; ++i) block[i] = load_eight<From>(in + i * kEight * block_bytes(From));
  const uint16_t half = tierd::f32_to_f16(largest_of(block) / -8.0f);
  const float scale = tierd::f16_to_f32(half);
  if (scale == 0) {
    std::memset(quants, 0x88, kQuantBlock / 2);
    return half;
  }
  const auto eight = hn::Set(i32, 8);
  for (uint32_t i = 0; i < kEights / 2; ++i) {
    const auto low = hn::Add(nearest_steps(block[i], scale, -8, 7), eight);
    const auto high = hn::Add(nearest_steps(block[i + kEights / 2], scale, -8, 7), eight);
    hn::StoreU(hn::DemoteTo(u8, hn::Or(low, hn::ShiftLeft<4>(high))), u8,
               reinterpret_cast<uint8_t*>(quants) + i * kEight);
  }
  return half;
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
