// Norms, activation functions, conversions and int8 quantization of one row.
// Included once per target by simd.cc.
#if defined(TIERD_COMPUTE_ACTIVATIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_ACTIVATIONS_INL_H
#undef TIERD_COMPUTE_ACTIVATIONS_INL_H
#else
#define TIERD_COMPUTE_ACTIVATIONS_INL_H
#endif

#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/check.h"
#include "hwy/contrib/math/math-inl.h"
#include "tiers/compute/kernel_sets.h"
#include "tiers/compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

// e^x for x <= 104, infinity above.
HWY_INLINE Lanes16 exp16(const Lanes16& x) {
  Lanes16 r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i)
    r.part[i] = hn::Exp(F32(), hn::Min(x.part[i], hn::Set(F32(), 104.0f)));
  return r;
}

// Lane i sums the values i, i + 16, …; the lanes are added at the end.
void rms_norm(const float* x, const float* weight, float eps, uint32_t n, float* out) {
  Lanes16 squares = set16(0);
  for (uint32_t i = 0; i < n; i += kLanes16) {
    const Lanes16 v = load_up_to_16(x + i, n - i);
    squares = fma16(v, v, squares);
  }
  const Lanes16 scale = set16(1.0f / std::sqrt(sum16(squares) / static_cast<float>(n) + eps));
  for (uint32_t i = 0; i < n; i += kLanes16) {
    const Lanes16 v = mul16(load_up_to_16(x + i, n - i), scale);
    store_up_to_16(mul16(v, load_up_to_16(weight + i, n - i)), out + i, n - i);
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, uint32_t n, float* out) {
  Lanes16 total = set16(0);
  for (uint32_t i = 0; i < n; i += kLanes16) total = add16(total, load_up_to_16(x + i, n - i));
  const float mean = sum16(total) / static_cast<float>(n);
  float padded[kLanes16];  // padded with the mean, whose deviation is zero
  const auto deviation = [&](uint32_t i) HWY_ATTR {
    if (n - i >= kLanes16) return sub16(load16(x + i), set16(mean));
    std::fill_n(padded, kLanes16, mean);
    std::memcpy(padded, x + i, (n - i) * sizeof(float));
    return sub16(load16(padded), set16(mean));
  };
  Lanes16 squares = set16(0);
  for (uint32_t i = 0; i < n; i += kLanes16) {
    const Lanes16 v = deviation(i);
    squares = fma16(v, v, squares);
  }
  const Lanes16 scale = set16(1.0f / std::sqrt(sum16(squares) / static_cast<float>(n) + eps));
  for (uint32_t i = 0; i < n; i += kLanes16) {
    const Lanes16 v = mul16(deviation(i), scale);
    store_up_to_16(fma16(v, load_up_to_16(weight + i, n - i), load_up_to_16(bias + i, n - i)), out + i,
                   n - i);
  }
}

void add(float* x, const float* y, uint32_t n) {
  for (uint32_t i = 0; i < n; i += kLanes16) {
    store_up_to_16(add16(load_up_to_16(x + i, n - i), load_up_to_16(y + i, n - i)), x + i, n - i);
  }
}

// x * sigmoid(of)
HWY_INLINE Lanes16 gated16(const Lanes16& x, const Lanes16& of) {
  return div16(x, add16(set16(1), exp16(sub16(set16(0), of))));
}

HWY_INLINE Lanes16 erf16(const Lanes16& x) {
  float lane[kLanes16];
  store16(x, lane);
  for (float& value : lane) value = std::erf(value);
  return load16(lane);
}

template <class F>
HWY_INLINE void map16(F f, const float* x, const float* factor, uint32_t n, float* out) {
  for (uint32_t i = 0; i < n; i += kLanes16) {
    const Lanes16 y = f(load_up_to_16(x + i, n - i));
    store_up_to_16(factor == nullptr ? y : mul16(y, load_up_to_16(factor + i, n - i)), out + i, n - i);
  }
}

// See Activation::swiglu_oai.
HWY_INLINE void swiglu_oai(float threshold, const float* x, const float* up, uint32_t n, float* out) {
  constexpr float kGain = 1.702F;
  const Lanes16 most = set16(threshold), least = set16(-threshold);
  for (uint32_t i = 0; i < n; i += kLanes16) {
    const Lanes16 m = min16(load_up_to_16(x + i, n - i), most);
    const Lanes16 factor = max16(min16(load_up_to_16(up + i, n - i), most), least);
    const Lanes16 y = gated16(m, mul16(set16(kGain), m));
    store_up_to_16(mul16(y, add16(set16(1), factor)), out + i, n - i);
  }
}

void activate(Activation f, float threshold, const float* x, const float* factor, uint32_t n, float* out) {
  switch (f) {
    case Activation::silu:
      return map16([](const Lanes16& v) HWY_ATTR { return gated16(v, v); }, x, factor, n, out);
    case Activation::relu:
      return map16([threshold](const Lanes16& v) HWY_ATTR { return above16(v, set16(threshold)); }, x, factor,
                   n, out);
    case Activation::relu_squared:
      return map16(
          [](const Lanes16& v) HWY_ATTR {
            const Lanes16 positive = above16(v, set16(0));
            return mul16(positive, positive);
          },
          x, factor, n, out);
    case Activation::gelu:
      return map16(
          [](const Lanes16& v) HWY_ATTR {
            const Lanes16 erf = erf16(mul16(v, set16(1 / std::numbers::sqrt2_v<float>)));
            return mul16(mul16(set16(0.5f), v), add16(set16(1), erf));
          },
          x, factor, n, out);
    case Activation::gelu_tanh:
      return map16(
          [](const Lanes16& v) HWY_ATTR {
            const float scale = 2 * std::sqrt(2 * std::numbers::inv_pi_v<float>);
            const Lanes16 cube = mul16(mul16(v, v), v);
            return gated16(v, mul16(set16(scale), fma16(set16(0.044715f), cube, v)));
          },
          x, factor, n, out);
    case Activation::swiglu_oai:
      return swiglu_oai(threshold, x, factor, n, out);
  }
}

void f32_to_f16(const float* x, uint32_t n, uint16_t* out) {
  for (uint32_t i = 0; i < n; i += kLanes16) {
    const uint32_t count = std::min(kLanes16, n - i);
    const Lanes16 v = load_up_to_16(x + i, count);
    uint16_t halves[kLanes16];
    for (uint32_t p = 0; p < kParts; ++p) {
      hn::StoreU(hn::BitCast(U16(), hn::DemoteTo(F16(), v.part[p])), U16(), halves + p * kVector);
    }
    std::memcpy(out + i, halves, count * sizeof(uint16_t));
  }
}

void quantize_row(const float* x, uint32_t row, QuantizedRows& out, double* squares) {
  TIERD_CHECK(row < out.rows);
  const uint32_t blocks = out.cols / kQuantBlock;
  const hn::Rebind<int8_t, F32> i8;
  const hn::Rebind<int16_t, F32> i16;
  for (uint32_t b = 0; b < blocks; ++b) {
    const float* in = x + b * kQuantBlock;
    V largest = hn::Zero(F32());
    auto nan = hn::FirstN(F32(), 0);
    for (uint32_t j = 0; j < kQuantBlock; j += kVector) {
      const V v = hn::LoadU(F32(), in + j);
      largest = hn::Max(largest, hn::Abs(v));
      nan = hn::Or(nan, hn::IsNaN(v));
    }
    const float scale = hn::AllFalse(F32(), nan) ? hn::GetLane(hn::MaxOfLanes(F32(), largest)) / 127.0f
                                                 : std::numeric_limits<float>::quiet_NaN();
    int8_t* q = out.q.data() + size_t{row} * out.cols + b * kQuantBlock;
    auto sum = hn::Zero(I32());
    for (uint32_t j = 0; j < kQuantBlock; j += kVector) {
      // x / 0 is NaN or infinite only if the scale has underflowed: those values become zero too.
      const V ratio = scale == 0 ? hn::Zero(F32()) : hn::Div(hn::LoadU(F32(), in + j), hn::Set(F32(), scale));
      // Min returns its second operand for a NaN.
      const V bounded = hn::Max(hn::Min(ratio, hn::Set(F32(), 127.0f)), hn::Set(F32(), -127.0f));
      const auto rounded = hn::NearestInt(bounded);
      hn::StoreU(hn::DemoteTo(i8, hn::DemoteTo(i16, rounded)), i8, q + j);
      sum = hn::Add(sum, rounded);
      if (j + kVector == kQuantBlock / 2)
        out.first_sum[size_t{row} * blocks + b] = hn::GetLane(hn::SumOfLanes(I32(), sum));
    }
    out.scale[size_t{row} * blocks + b] = scale;
    out.sum[size_t{row} * blocks + b] = hn::GetLane(hn::SumOfLanes(I32(), sum));
  }
  if (squares != nullptr) add_squares(x, row, out, squares);
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
