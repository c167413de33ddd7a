// Attention of one query head over a run of positions: scores, softmax, weighted sum of the values, each in
// the order of the positions. Included once per target by simd.cc.
#if defined(TIERD_COMPUTE_ATTENTION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_ATTENTION_INL_H
#undef TIERD_COMPUTE_ATTENTION_INL_H
#else
#define TIERD_COMPUTE_ATTENTION_INL_H
#endif

#include <cmath>

#include "tiers/compute/activations-inl.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

// Consecutive positions are a whole token's keys apart, too far for the processor's own prefetching.
inline constexpr uint32_t kAheadPositions = 12;
template <class T>
HWY_INLINE void prefetch(const T* p, uint32_t n) {
  for (uint32_t i = 0; i < n; i += 64 / sizeof(T)) __builtin_prefetch(p + i);
}

// Lane i sums the products i, i + 16, …; the lanes are added at the end.
template <class T>
HWY_INLINE float dot(const float* q, const T* k, uint32_t n) {
  Lanes16 sum = set16(0);
  uint32_t i = 0;
  for (; i + kLanes16 <= n; i += kLanes16) sum = fma16(load16(q + i), load16(k + i), sum);
  if (i < n) sum = fma16(load_some(q + i, n - i), load_some(k + i, n - i), sum);
  return sum16(sum);
}

// scores -> exp(score - largest); returns their sum, with that of the sink.
HWY_INLINE float exponentials(float* scores, uint32_t n, float sink) {
  Lanes16 largest = set16(scores[0]);
  uint32_t i = 0;
  for (; i + kLanes16 <= n; i += kLanes16) largest = max16(largest, load16(scores + i));
  float top = largest16(largest);
  for (; i < n; ++i) top = scores[i] > top ? scores[i] : top;
  if (sink > top) top = sink;
  Lanes16 total = set16(0);
  for (i = 0; i < n; i += kLanes16) {
    const Lanes16 e = exp16(sub16(load_up_to_16(scores + i, n - i), set16(top)));
    store_up_to_16(e, scores + i, n - i);
    total = add16(total, load_up_to_16(scores + i, n - i));
  }
  return sum16(total) + std::exp(sink - top);
}

// out[0 … 16*N) = sum over positions of weight * v, divided by `total`.
template <int N, class T>
HWY_INLINE void weigh(const float* weights, uint32_t positions, const T* v, size_t stride, float total,
                      float* out) {
  Lanes16 sum[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) sum[i] = set16(0);
  for (uint32_t p = 0; p < positions; ++p, v += stride) {
    prefetch(v + kAheadPositions * stride, N * kLanes16);
    const Lanes16 w = set16(weights[p]);
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[i] = fma16(w, load16(v + i * kLanes16), sum[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) store16(div16(sum[i], set16(total)), out + i * kLanes16);
}

template <class T>
void attend(const float* q, const T* k, const T* v, size_t stride, uint32_t first, uint32_t last,
            uint32_t head_dim, const ScoreShape& score, float* scratch, float* out) {
  const uint32_t positions = last - first;
  if (positions == 0) {
    std::fill_n(out, head_dim, 0.0f);
    return;
  }
  k += first * stride;
  v += first * stride;
  for (uint32_t p = 0; p < positions; ++p) {
    prefetch(k + (p + kAheadPositions) * stride, head_dim);
    scratch[p] = dot(q, k + p * stride, head_dim) * score.scale;
  }
  if (score.cap != 0) {
    for (uint32_t p = 0; p < positions; ++p) scratch[p] = score.cap * std::tanh(scratch[p] / score.cap);
  }
  const float total = exponentials(scratch, positions, score.sink);
  uint32_t i = 0;
  for (; i + 4 * kLanes16 <= head_dim; i += 4 * kLanes16) {
    weigh<4>(scratch, positions, v + i, stride, total, out + i);
  }
  for (; i + kLanes16 <= head_dim; i += kLanes16) weigh<1>(scratch, positions, v + i, stride, total, out + i);
  for (; i < head_dim; ++i) {
    float sum = 0;
    for (uint32_t p = 0; p < positions; ++p) {
      T one[kVector] = {v[p * stride + i]};
      sum = hn::GetLane(hn::MulAdd(hn::Set(F32(), scratch[p]), to_f32(one), hn::Set(F32(), sum)));
    }
    out[i] = sum / total;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
