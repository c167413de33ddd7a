// Block encodings by int8 activations with AVX2: the twin of int8_avx512.cc on two 256-bit halves of 8 rows.
// No sum saturates: eight products of a nibble (0 … 15) and an int8 fit into 16 bits, two of a six-bit number
// and an int8 do, and bytes of q8_0 are widened to 16 bits first.
#include "tiers/compute/kernel_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "core/base/check.h"
#include "tiers/compute/k_chunks.h"

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

// Consecutive rows of quantized activations.
struct Int8Rows {
  const int8_t* q;
  const float* scale;
  const int32_t* sum;
  const int32_t* first_sum;
  size_t cols;
  size_t blocks;

  Int8Rows from(size_t row) const {
    const size_t at = row * blocks;
    return {q + row * cols, scale + at, sum + at, first_sum + at, cols, blocks};
  }
};

TIERD_AVX2_INLINE __m256 load_halves(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// sums[t][h] += the products of one block.
template <Encoding E, int N>
TIERD_AVX2_INLINE void add_block(const uint8_t* w, const Int8Rows& x, size_t b, __m256 (&sums)[N][kHalves]) {
  __m256i p[N][kHalves];
  if constexpr (E == Encoding::q4_0) {
    dot_q4_0<N>(w + kBlockScales, x.q + b * kQuantBlock, x.cols, p);
  } else {
    dot_q8_0<N>(w + kBlockScales, x.q + b * kQuantBlock, x.cols, p);
  }
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
    const __m256 d = load_halves(w + 16 * h);
#pragma GCC unroll 3
    for (int t = 0; t < N; ++t) {
      const __m256i offset =
          _mm256_slli_epi32(_mm256_set1_epi32(x.sum[t * x.blocks + b]), E == Encoding::q4_0 ? 3 : 7);
      const __m256 scales = _mm256_mul_ps(d, _mm256_set1_ps(x.scale[t * x.blocks + b]));
      sums[t][h] = _mm256_fmadd_ps(scales, _mm256_cvtepi32_ps(_mm256_sub_epi32(p[t][h], offset)), sums[t][h]);
    }
  }
}

template <Encoding E>
TIERD_AVX2_INLINE __m256i k_chunk(const uint8_t* super_block, uint32_t chunk, int h) {
  return load(super_block + KChunks<E>::kFirstChunk + chunk * kChunk + 32 * h);
}
// Returns the bits of `mask` in each byte, from bit `shift` on.
TIERD_AVX2_INLINE __m256i byte_bits(__m256i bytes, uint32_t shift, int mask) {
  return _mm256_and_si256(_mm256_srlv_epi32(bytes, _mm256_set1_epi32(static_cast<int>(shift))),
                          _mm256_set1_epi8(static_cast<char>(mask)));
}
TIERD_AVX2_INLINE __m256i with_high(__m256i low, __m256i high) {
  return _mm256_or_si256(low, _mm256_slli_epi32(high, 4));
}
// Returns byte `byte` of each lane, signed, as a float.
TIERD_AVX2_INLINE __m256 byte_value(__m256i word, uint32_t byte) {
  const __m256i shift = _mm256_set1_epi32(24 - 8 * static_cast<int>(byte));
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_sllv_epi32(word, shift), 24));
}

// Returns the integers of four columns of a run, unsigned: those of q6_k are 32 too large.
template <Encoding E>
TIERD_AVX2_INLINE __m256i k_word(const uint8_t* super_block, uint32_t run, uint32_t c, int h) {
  using Chunks = KChunks<E>;
  const __m256i low = byte_bits(k_chunk<E>(super_block, Chunks::low(run, c), h), Chunks::low_shift(run), 15);
  if constexpr (!Chunks::kHasHigh) return low;
  const __m256i high = k_chunk<E>(super_block, Chunks::high(run, c), h);
  return with_high(low, byte_bits(high, Chunks::high_shift(run), Chunks::kHighMask));
}

// The factor of the integers of a run, or of half a run of q6_k, and the value that is then subtracted.
struct StepAndMin {
  __m256 step;
  __m256 min;
};
template <Encoding E>
TIERD_AVX2_INLINE StepAndMin k_step_and_min(const uint8_t* super_block, uint32_t run, uint32_t part, int h) {
  using Chunks = KChunks<E>;
  const __m256 d = load_halves(super_block + 16 * h);
  __m256i scales = k_chunk<E>(super_block, Chunks::kScales + (Chunks::kHasMin ? 0 : run / 2), h);
  if constexpr (!Chunks::kHasMin)
    return {_mm256_mul_ps(d, byte_value(scales, run % 2 * 2 + part)), _mm256_setzero_ps()};
  __m256i mins = k_chunk<E>(super_block, Chunks::kScales + 1, h);
  if (run < 4) {
    scales = byte_bits(scales, 0, 63);
    mins = byte_bits(mins, 0, 63);
  } else {
    const __m256i low = k_chunk<E>(super_block, Chunks::kScales + 2, h);
    scales = with_high(byte_bits(low, 0, 15), byte_bits(scales, 6, 3));
    mins = with_high(byte_bits(low, 4, 15), byte_bits(mins, 6, 3));
  }
  return {_mm256_mul_ps(d, byte_value(scales, run % 4)),
          _mm256_mul_ps(load_halves(super_block + Chunks::kFactorBytes + 16 * h), byte_value(mins, run % 4))};
}

// sums[t][h] += the products of one run of 32 columns, block `b` of the activations.
template <Encoding E, int N>
TIERD_AVX2_INLINE void add_run(const uint8_t* w, const Int8Rows& x, size_t b, uint32_t run,
                               __m256 (&sums)[N][kHalves]) {
  constexpr uint32_t kParts = E == Encoding::q6_k ? 2 : 1;  // with scales of their own
  constexpr uint32_t kChunks = 8 / kParts;
  const __m256i one = _mm256_set1_epi16(1);
  const int8_t* q = x.q + b * kQuantBlock;
  for (uint32_t part = 0; part < kParts; ++part) {
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      __m256i p[N];
      for (int t = 0; t < N; ++t) p[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
      for (uint32_t c = part * kChunks; c < (part + 1) * kChunks; ++c) {
        const __m256i word = k_word<E>(w, run, c, h);
#pragma GCC unroll 3
        for (int t = 0; t < N; ++t) {
          const __m256i products = _mm256_maddubs_epi16(word, broadcast4(q + t * x.cols + 4 * c));
          p[t] = _mm256_add_epi32(p[t], _mm256_madd_epi16(products, one));
        }
      }
      const StepAndMin scales = k_step_and_min<E>(w, run, part, h);
#pragma GCC unroll 3
      for (int t = 0; t < N; ++t) {
        const size_t at = t * x.blocks + b;
        if constexpr (E == Encoding::q6_k) {
          const int32_t sum = part == 0 ? x.first_sum[at] : x.sum[at] - x.first_sum[at];
          p[t] = _mm256_sub_epi32(p[t], _mm256_set1_epi32(32 * sum));
        }
        const __m256 step = _mm256_mul_ps(scales.step, _mm256_set1_ps(x.scale[at]));
        sums[t][h] = _mm256_fmadd_ps(step, _mm256_cvtepi32_ps(p[t]), sums[t][h]);
        if constexpr (E != Encoding::q6_k) {
          const __m256 sum = _mm256_set1_ps(x.scale[at] * static_cast<float>(x.sum[at]));
          sums[t][h] = _mm256_fnmadd_ps(scales.min, sum, sums[t][h]);
        }
      }
    }
  }
}

// Multiplies one group by N tokens; `y` points to its first row.
template <Encoding E, int N>
TIERD_AVX2 void multiply(const uint8_t* w, const Int8Rows& x, float* y, size_t ldy) {
  __m256 sums[N][kHalves];
#pragma GCC unroll 3
  for (int t = 0; t < N; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_ps();
  for (size_t b = 0; b < x.blocks; b += block_values(E) / kQuantBlock, w += kBlockBytes<E>) {
#pragma GCC unroll 9
    for (uint32_t i = 0; i < kBlockBytes<E>; i += kChunk) {
      _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetchBytes + i, _MM_HINT_T0);
    }
    if constexpr (is_k_quant(E)) {
#pragma GCC unroll 1
      for (uint32_t run = 0; run < kSuperBlock / kQuantBlock; ++run) add_run<E, N>(w, x, b + run, run, sums);
    } else {
      add_block<E, N>(w, x, b, sums);
    }
  }
  for (int t = 0; t < N; ++t) {
    for (int h = 0; h < kHalves; ++h) _mm256_storeu_ps(y + t * ldy + 8 * h, sums[t][h]);
  }
}

using Multiply = void (*)(const uint8_t*, const Int8Rows&, float*, size_t);

template <Encoding E>
constexpr Multiply kMultiply[kTileTokens] = {multiply<E, 1>, multiply<E, 2>, multiply<E, 3>};

const Multiply* multiply_of(Encoding e) {
  switch (e) {
    case Encoding::q8_0:
      return kMultiply<Encoding::q8_0>;
    case Encoding::q4_0:
      return kMultiply<Encoding::q4_0>;
    case Encoding::q4_k:
      return kMultiply<Encoding::q4_k>;
    case Encoding::q5_k:
      return kMultiply<Encoding::q5_k>;
    case Encoding::q6_k:
      return kMultiply<Encoding::q6_k>;
    case Encoding::f32:
    case Encoding::f16:
    case Encoding::bf16:
      break;
  }
  TIERD_CHECK_MSG(false, name(e));
  return nullptr;
}

}  // namespace

void matmul_int8(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const QuantizedRows& x,
                 uint32_t first, uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(cols % block_values(e) == 0 && x.cols == cols && first + tokens <= x.rows);
  const Multiply* multiply = multiply_of(e);
  const Int8Rows all = {x.q.data(),         x.scale.data(), x.sum.data(),
                        x.first_sum.data(), cols,           cols / kQuantBlock};
  for (uint32_t g = 0; g < groups; ++g) {
    const auto* w = reinterpret_cast<const uint8_t*>(weights) + g * group_bytes(e, cols);
    for (uint32_t t = 0; t < tokens; t += kTileTokens) {
      const uint32_t count = tokens - t < kTileTokens ? tokens - t : kTileTokens;
      multiply[count - 1](w, all.from(first + t), y + t * ldy + g * kGroupRows, ldy);
    }
  }
}

}  // namespace tierd::avx2
#endif
