// Block encodings by int8 activations, for int8_avx2.cc: the twin of blocks_avx512.h on halves of 8 rows.
// Private to tiers/compute.
//
// No sum saturates. Products of entries (0 … 63) and an int8, two of them, fit into 16 bits; of nibbles all
// eight of a lane do. Bytes of q8_0 are widened to 16 bits first, and the values of iq4, whose entries are up
// to 241, are multiplied as magnitudes by activations that have their signs.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/model/layout/block_layout.h"
#include "core/model/layout/row_group.h"

#define TIERD_AVX2 __attribute__((target("avx2,fma,f16c")))
#define TIERD_AVX2_INLINE TIERD_AVX2 __attribute__((always_inline)) inline

namespace tierd::avx2 {

inline constexpr uint32_t kChunk = 64;
inline constexpr uint32_t kHalfRows = 8;

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

TIERD_AVX2_INLINE __m256i broadcast4(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm256_set1_epi32(four);
}
TIERD_AVX2_INLINE __m256 load_halves(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
TIERD_AVX2_INLINE __m256i shift_right(__m256i words, uint32_t bits) {
  return _mm256_srlv_epi32(words, _mm256_set1_epi32(static_cast<int>(bits)));
}
TIERD_AVX2_INLINE __m256i masked(__m256i words, uint32_t width, uint32_t each = 1) {
  return _mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(((1u << width) - 1) * each)));
}

// The words `word` of 8 rows.
template <Encoding E>
TIERD_AVX2_INLINE __m256i words8(const uint8_t* block, uint32_t word, uint32_t half) {
  if (word == kSecondFactor) {
    const uint8_t* factors = block + 2 * kGroupRows + 2 * kHalfRows * half;
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(factors)));
  }
  const uint8_t* p = block + kGroupRows * factor_bytes(E) + word * kChunk + kChunk / 2 * half;
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Whether codes stand for signed bytes that are too large for products of unsigned ones.
constexpr bool is_signed(Encoding e) {
  return e == Encoding::iq4_nl || e == Encoding::iq4_xs;
}

// Returns four columns of a run: unsigned entries, or signed values.
template <Encoding E>
TIERD_AVX2_INLINE __m256i entries(const uint8_t* block, uint32_t run, uint32_t four, uint32_t half) {
  constexpr uint32_t kBytes = 0x01010101u;
  const Bits low_at = low_bits(E, run, four);
  __m256i codes = words8<E>(block, low_at.word, half);
  if constexpr (low_width(E) == 8) return codes;
  codes = masked(shift_right(codes, low_at.shift), low_width(E), kBytes);
  if constexpr (high_width(E) != 0) {
    const Bits high_at = high_bits(E, run, four);
    const __m256i high =
        masked(shift_right(words8<E>(block, high_at.word, half), high_at.shift), high_width(E), kBytes);
    codes = _mm256_or_si256(codes, _mm256_slli_epi32(high, low_width(E)));
  }
  if constexpr (has_table(E)) {
    alignas(16) static constexpr auto kTable = [] {
      std::array<uint8_t, 16> table = code_entries(E);
      if (is_signed(E)) {
        for (uint8_t& entry : table) entry = static_cast<uint8_t>(entry - code_offset(E));
      }
      return table;
    }();
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kTable.data()));
    codes = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
  }
  return codes;
}

// Whether the sums of a run's products of entries fit into 16 bits.
constexpr bool sums_in_16_bits(Encoding e) {
  return code_width(e) <= 4 && !has_table(e);
}

// p += the products of four columns; in 16 bits if sums_in_16_bits.
template <Encoding E>
TIERD_AVX2_INLINE __m256i add_products(__m256i p, __m256i word, __m256i columns) {
  if constexpr (E == Encoding::q8_0) {
    const __m256i even = _mm256_and_si256(word, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(word, 8);
    const __m256i x_even = _mm256_srai_epi16(_mm256_slli_epi16(columns, 8), 8);
    const __m256i x_odd = _mm256_srai_epi16(columns, 8);
    return _mm256_add_epi32(p,
                            _mm256_add_epi32(_mm256_madd_epi16(even, x_even), _mm256_madd_epi16(odd, x_odd)));
  } else {
    const __m256i products =
        is_signed(E) ? _mm256_maddubs_epi16(_mm256_abs_epi8(word), _mm256_sign_epi8(columns, word))
                     : _mm256_maddubs_epi16(word, columns);
    if constexpr (sums_in_16_bits(E)) return _mm256_add_epi16(p, products);
    return _mm256_add_epi32(p, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  }
}

// An integer of 8 rows, as floats.
template <Encoding E>
TIERD_AVX2_INLINE __m256 integers8(const uint8_t* block, const ScaleBits& at, uint32_t half) {
  __m256i value = masked(shift_right(words8<E>(block, at.low.word, half), at.low.shift), at.low_width);
  if (at.high_width != 0) {
    const __m256i high =
        masked(shift_right(words8<E>(block, at.high.word, half), at.high.shift), at.high_width);
    value =
        _mm256_or_si256(value, _mm256_sllv_epi32(high, _mm256_set1_epi32(static_cast<int>(at.low_width))));
  }
  value = _mm256_xor_si256(value, _mm256_set1_epi32(static_cast<int>(at.flip)));
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(value, _mm256_set1_epi32(at.offset)));
}

// The steps and minima of number `i` of those that a block has.
struct StepAndMin {
  __m256 step;
  __m256 min;
};
template <Encoding E>
TIERD_AVX2_INLINE StepAndMin step_and_min(const uint8_t* block, uint32_t i, uint32_t half) {
  StepAndMin r;
  if constexpr (E == Encoding::mxfp4) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + kHalfRows * half));
    const __m256i exponent = _mm256_cvtepu8_epi32(bytes);
    // 2^(exponent - 128), of which the least two are subnormal.
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), exponent);
    const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), exponent);
    r.step = _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, is_subnormal));
  } else {
    r.step = load_halves(block + 2 * kHalfRows * half);
  }
  r.min = _mm256_setzero_ps();
  if constexpr (has_min(E)) r.min = load_halves(block + 2 * kGroupRows + 2 * kHalfRows * half);
  if constexpr (has_scales(E)) {
    r.step = _mm256_mul_ps(r.step, integers8<E>(block, scale_bits(E, i), half));
    if constexpr (has_min(E)) r.min = _mm256_mul_ps(r.min, integers8<E>(block, min_bits(E, i), half));
  } else if constexpr (has_min(E)) {
    r.min = _mm256_sub_ps(_mm256_set1_ps(-0.0F), r.min);
  }
  return r;
}

// sums[t][half] += the products of a run; `x_block`: the run's activations.
template <Encoding E, int N>
TIERD_AVX2_INLINE void add_run(const uint8_t* block, const Int8Rows& x, size_t x_block, uint32_t run,
                               __m256 (&sums)[N][2]) {
  constexpr uint32_t kStepsOfRun = kQuantBlock / scaled_values(E);
  constexpr uint32_t kScaledFours = scaled_values(E) / 4;
  const int8_t* q = x.q + x_block * kQuantBlock;
#pragma GCC unroll 2
  for (uint32_t part = 0; part < kStepsOfRun; ++part) {
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; ++half) {
      __m256i p[N];
#pragma GCC unroll 3
      for (int t = 0; t < N; ++t) p[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
      for (uint32_t four = part * kScaledFours; four < (part + 1) * kScaledFours; ++four) {
        const __m256i word = entries<E>(block, run, four, half);
#pragma GCC unroll 3
        for (int t = 0; t < N; ++t) p[t] = add_products<E>(p[t], word, broadcast4(q + t * x.cols + 4 * four));
      }
      const StepAndMin scales = step_and_min<E>(block, run * kStepsOfRun + part, half);
#pragma GCC unroll 3
      for (int t = 0; t < N; ++t) {
        if constexpr (sums_in_16_bits(E)) p[t] = _mm256_madd_epi16(p[t], _mm256_set1_epi16(1));
        const size_t at = t * x.blocks + x_block;
        const int32_t sum = kStepsOfRun == 1 ? x.sum[at]
                            : part == 0      ? x.first_sum[at]
                                             : x.sum[at] - x.first_sum[at];
        if constexpr (code_offset(E) != 0 && !is_signed(E))
          p[t] = _mm256_sub_epi32(p[t], _mm256_set1_epi32(code_offset(E) * sum));
        const __m256 step = _mm256_mul_ps(scales.step, _mm256_set1_ps(x.scale[at]));
        sums[t][half] = _mm256_fmadd_ps(step, _mm256_cvtepi32_ps(p[t]), sums[t][half]);
        if constexpr (has_min(E)) {
          const __m256 scaled_sum = _mm256_set1_ps(x.scale[at] * static_cast<float>(sum));
          sums[t][half] = _mm256_fnmadd_ps(scales.min, scaled_sum, sums[t][half]);
        }
      }
    }
  }
}

}  // namespace tierd::avx2
