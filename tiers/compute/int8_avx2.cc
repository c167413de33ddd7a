// q8_0 and q4_0 by int8 activations with AVX2: the twin of int8_avx512.cc on two 256-bit halves of 8 rows.
// Nothing here saturates: a product of a nibble (0 … 15) and an int8 fits in 16 bits eight times over, and
// bytes of q8_0 are widened to 16 bits first.
#include "tiers/compute/kernel_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "core/base/check.h"

#define TIERD_AVX2 __attribute__((target("avx2,fma,f16c")))
#define TIERD_AVX2_INLINE TIERD_AVX2 __attribute__((always_inline)) inline

namespace tierd::avx2 {
namespace {

constexpr uint32_t kBlockScales = 32;  // bytes of the 16 scales
constexpr uint32_t kChunk = 64;
constexpr uint32_t kPrefetchBytes = 4096;
constexpr uint32_t kTileTokens = 3;
constexpr int kHalves = 2;

template <Encoding E>
constexpr uint32_t kBlockBytes = kGroupRows* block_bytes(E);

TIERD_AVX2_INLINE __m256i load(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

TIERD_AVX2_INLINE __m256i broadcast4(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm256_set1_epi32(four);
}

// p[t][h] = the integer dot products of one block of q4_0, h = rows 0-7, 8-15.
template <int N>
TIERD_AVX2_INLINE void dot_q4_0(const uint8_t* chunks, const int8_t* q, size_t stride,
                                __m256i (&p)[N][kHalves]) {
  const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 3
  for (int t = 0; t < N; ++t) p[t][0] = p[t][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      const __m256i both = load(chunks + kChunk * c + 32 * h);
      const __m256i low = _mm256_and_si256(both, nibble);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
#pragma GCC unroll 3
      for (int t = 0; t < N; ++t) {
        const __m256i a = _mm256_maddubs_epi16(low, broadcast4(q + t * stride + 4 * c));
        const __m256i b = _mm256_maddubs_epi16(high, broadcast4(q + t * stride + 16 + 4 * c));
        p[t][h] = _mm256_add_epi16(p[t][h], _mm256_add_epi16(a, b));  // at most 8 * 2 * 15 * 128 = 30720
      }
    }
  }
  const __m256i one = _mm256_set1_epi16(1);
#pragma GCC unroll 3
  for (int t = 0; t < N; ++t) {
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) p[t][h] = _mm256_madd_epi16(p[t][h], one);
  }
}

template <int N>
TIERD_AVX2_INLINE void dot_q8_0(const uint8_t* chunks, const int8_t* q, size_t stride,
                                __m256i (&p)[N][kHalves]) {
  const __m256i even_bytes = _mm256_set1_epi16(255);
#pragma GCC unroll 3
  for (int t = 0; t < N; ++t) p[t][0] = p[t][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) {
    __m256i even[kHalves], odd[kHalves];
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      const __m256i bytes = load(chunks + kChunk * c + 32 * h);
      even[h] = _mm256_and_si256(bytes, even_bytes);
      odd[h] = _mm256_srli_epi16(bytes, 8);
    }
#pragma GCC unroll 3
    for (int t = 0; t < N; ++t) {
      const __m256i x = broadcast4(q + t * stride + 4 * c);
      const __m256i x_even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
      const __m256i x_odd = _mm256_srai_epi16(x, 8);
#pragma GCC unroll 2
      for (int h = 0; h < kHalves; ++h) {
        p[t][h] = _mm256_add_epi32(
            p[t][h], _mm256_add_epi32(_mm256_madd_epi16(even[h], x_even), _mm256_madd_epi16(odd[h], x_odd)));
      }
    }
  }
}

// One group by N tokens, rows of x and y given by pointers to the first.
template <Encoding E, int N>
TIERD_AVX2 void multiply(const uint8_t* w, size_t blocks, const int8_t* q, const float* scale,
                         const int32_t* sum, float* y, size_t ldy) {
  __m256 sums[N][kHalves];
#pragma GCC unroll 3
  for (int t = 0; t < N; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_ps();
  for (size_t b = 0; b < blocks; ++b, w += kBlockBytes<E>, q += kQuantBlock) {
#pragma GCC unroll 9
    for (uint32_t i = 0; i < kBlockBytes<E>; i += kChunk) {
      _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetchBytes + i, _MM_HINT_T0);
    }
    __m256i p[N][kHalves];
    if constexpr (E == Encoding::q4_0) {
      dot_q4_0<N>(w + kBlockScales, q, blocks * kQuantBlock, p);
    } else {
      dot_q8_0<N>(w + kBlockScales, q, blocks * kQuantBlock, p);
    }
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      const __m256 d = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w) + h));
#pragma GCC unroll 3
      for (int t = 0; t < N; ++t) {
        const __m256i offset =
            _mm256_slli_epi32(_mm256_set1_epi32(sum[t * blocks + b]), E == Encoding::q4_0 ? 3 : 7);
        const __m256 scales = _mm256_mul_ps(d, _mm256_set1_ps(scale[t * blocks + b]));
        sums[t][h] =
            _mm256_fmadd_ps(scales, _mm256_cvtepi32_ps(_mm256_sub_epi32(p[t][h], offset)), sums[t][h]);
      }
    }
  }
  for (int t = 0; t < N; ++t) {
    for (int h = 0; h < kHalves; ++h) _mm256_storeu_ps(y + t * ldy + 8 * h, sums[t][h]);
  }
}

using Multiply = void (*)(const uint8_t*, size_t, const int8_t*, const float*, const int32_t*, float*,
                          size_t);

template <Encoding E>
constexpr Multiply kMultiply[kTileTokens] = {multiply<E, 1>, multiply<E, 2>, multiply<E, 3>};

}  // namespace

void matmul_int8(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const QuantizedRows& x,
                 uint32_t first, uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(is_quantized(e) && x.cols == cols && first + tokens <= x.rows);
  const auto& multiply_of = e == Encoding::q4_0 ? kMultiply<Encoding::q4_0> : kMultiply<Encoding::q8_0>;
  const size_t blocks = cols / kQuantBlock;
  for (uint32_t g = 0; g < groups; ++g) {
    const auto* w = reinterpret_cast<const uint8_t*>(weights) + g * group_bytes(e, cols);
    for (uint32_t t = 0; t < tokens; t += kTileTokens) {
      const size_t row = first + t;
      const uint32_t count = tokens - t < kTileTokens ? tokens - t : kTileTokens;
      multiply_of[count - 1](w, blocks, x.q.data() + row * cols, x.scale.data() + row * blocks,
                             x.sum.data() + row * blocks, y + t * ldy + g * kGroupRows, ldy);
    }
  }
}

}  // namespace tierd::avx2
#endif
