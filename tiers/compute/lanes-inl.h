// 16 floats, one for each row of a group: one vector of AVX-512 or two of AVX2. Reductions over activations
// use the same 16 lanes, so that their order is the same on both. Included once per target by simd.cc, so the
// usual include guard would not do.
#if defined(TIERD_COMPUTE_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_LANES_INL_H
#undef TIERD_COMPUTE_LANES_INL_H
#else
#define TIERD_COMPUTE_LANES_INL_H
#endif

#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using I32 = hn::Rebind<int32_t, F32>;
using U32 = hn::Rebind<uint32_t, F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using F16 = hn::Rebind<hwy::float16_t, F32>;
using BF16 = hn::Rebind<hwy::bfloat16_t, F32>;
using V = hn::Vec<F32>;

inline constexpr uint32_t kLanes16 = 16;
inline constexpr uint32_t kVector = hn::MaxLanes(F32());
inline constexpr uint32_t kParts = kLanes16 / kVector;

struct Lanes16 {
  V part[kParts];
};

HWY_INLINE Lanes16 set16(float value) {
  Lanes16 r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) r.part[i] = hn::Set(F32(), value);
  return r;
}

HWY_INLINE V to_f32(const float* p) {
  return hn::LoadU(F32(), p);
}
HWY_INLINE V to_f32(const uint16_t* half) {
  return hn::PromoteTo(F32(), hn::BitCast(F16(), hn::LoadU(U16(), half)));
}
HWY_INLINE V bf16_to_f32(const uint16_t* p) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(U16(), p))));
}

template <class T>
HWY_INLINE Lanes16 load16(const T* p) {
  Lanes16 r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) r.part[i] = to_f32(p + i * kVector);
  return r;
}
// Loads the first `count` (1 … 15) values; the rest is zero.
template <class T>
HWY_INLINE Lanes16 load_some(const T* p, uint32_t count) {
  T padded[kLanes16] = {};
  std::memcpy(padded, p, count * sizeof(T));
  return load16(padded);
}
template <class T>
HWY_INLINE Lanes16 load_up_to_16(const T* p, uint32_t count) {
  return count >= kLanes16 ? load16(p) : load_some(p, count);
}

HWY_INLINE void store16(const Lanes16& x, float* p) {
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) hn::StoreU(x.part[i], F32(), p + i * kVector);
}
HWY_INLINE void store_up_to_16(const Lanes16& x, float* p, uint32_t count) {
  if (count >= kLanes16) return store16(x, p);
  float padded[kLanes16];
  store16(x, padded);
  std::memcpy(p, padded, count * sizeof(float));
}

#define TIERD_LANEWISE(name, operation)                                       \
  HWY_INLINE Lanes16 name(const Lanes16& a, const Lanes16& b) {               \
    Lanes16 r;                                                                \
    _Pragma("GCC unroll 2") for (uint32_t i = 0; i < kParts; ++i) r.part[i] = \
        operation(a.part[i], b.part[i]);                                      \
    return r;                                                                 \
  }
TIERD_LANEWISE(add16, hn::Add)
TIERD_LANEWISE(sub16, hn::Sub)
TIERD_LANEWISE(mul16, hn::Mul)
TIERD_LANEWISE(div16, hn::Div)
TIERD_LANEWISE(max16, hn::Max)
TIERD_LANEWISE(min16, hn::Min)
#undef TIERD_LANEWISE

// Returns x if x > least, else 0; 0 for a NaN.
HWY_INLINE Lanes16 above16(const Lanes16& x, const Lanes16& least) {
  Lanes16 r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i)
    r.part[i] = hn::IfThenElseZero(hn::Gt(x.part[i], least.part[i]), x.part[i]);
  return r;
}

// Returns a * b + c, fused.
HWY_INLINE Lanes16 fma16(const Lanes16& a, const Lanes16& b, const Lanes16& c) {
  Lanes16 r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) r.part[i] = hn::MulAdd(a.part[i], b.part[i], c.part[i]);
  return r;
}

// Adds lanes i and i + 8, then sums the eight results by the same 256-bit instructions on both targets.
HWY_INLINE float sum16(const Lanes16& x) {
  const hn::CappedTag<float, 8> half;
#if HWY_TARGET == HWY_AVX3
  const auto sum = hn::Add(hn::LowerHalf(half, x.part[0]), hn::UpperHalf(half, x.part[0]));
#else
  const auto sum = hn::Add(x.part[0], x.part[1]);
#endif
  return hn::GetLane(hn::SumOfLanes(half, sum));
}
HWY_INLINE float largest16(const Lanes16& x) {
  float lane[kLanes16];
  store16(x, lane);
  float r = lane[0];
  for (uint32_t i = 1; i < kLanes16; ++i) r = lane[i] > r ? lane[i] : r;
  return r;
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
