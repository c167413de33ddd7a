// Block encodings by int8 activations, for int8_avx512.cc: run after run of 32 columns
// (core/model/layout/block_layout.h). Private to tiers/compute.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/model/layout/block_layout.h"
#include "core/model/layout/row_group.h"
#include "tiers/compute/int8_avx512.h"

namespace tierd::avx512_vnni {

TIERD_VNNI_INLINE __m512i load_chunk(const uint8_t* p) {
  return _mm512_loadu_si512(p);
}
// The words `word` of 16 rows.
template <Encoding E>
TIERD_VNNI_INLINE __m512i words16(const uint8_t* block, uint32_t word) {
  if (word == kSecondFactor)
    return _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2 * kGroupRows)));
  return load_chunk(block + kGroupRows * factor_bytes(E) + word * kChunk);
}
TIERD_VNNI_INLINE __m512i shift_right(__m512i words, uint32_t bits) {
  return _mm512_srlv_epi32(words, _mm512_set1_epi32(static_cast<int>(bits)));
}
TIERD_VNNI_INLINE __m512i masked(__m512i words, uint32_t width, uint32_t each = 1) {
  return _mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(((1u << width) - 1) * each)));
}

// Returns the unsigned entries of four columns of a run: values + code_offset.
template <Encoding E>
TIERD_VNNI_INLINE __m512i entries(const uint8_t* block, uint32_t run, uint32_t four) {
  constexpr uint32_t kBytes = 0x01010101u;
  const Bits low_at = low_bits(E, run, four);
  __m512i codes = words16<E>(block, low_at.word);
  if constexpr (low_width(E) == 8) return codes;
  codes = masked(shift_right(codes, low_at.shift), low_width(E), kBytes);
  if constexpr (high_width(E) != 0) {
    const Bits high_at = high_bits(E, run, four);
    const __m512i high =
        masked(shift_right(words16<E>(block, high_at.word), high_at.shift), high_width(E), kBytes);
    codes = _mm512_or_si512(codes, _mm512_slli_epi32(high, low_width(E)));
  }
  if constexpr (has_table(E)) {
    alignas(16) static constexpr auto kTable = code_entries(E);
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kTable.data()));
    codes = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), codes);
  }
  return codes;
}

// An integer of 16 rows, as floats.
template <Encoding E>
TIERD_VNNI_INLINE __m512 integers16(const uint8_t* block, const ScaleBits& at) {
  __m512i value = masked(shift_right(words16<E>(block, at.low.word), at.low.shift), at.low_width);
  if (at.high_width != 0) {
    const __m512i high = masked(shift_right(words16<E>(block, at.high.word), at.high.shift), at.high_width);
    value =
        _mm512_or_si512(value, _mm512_sllv_epi32(high, _mm512_set1_epi32(static_cast<int>(at.low_width))));
  }
  value = _mm512_xor_si512(value, _mm512_set1_epi32(static_cast<int>(at.flip)));
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(value, _mm512_set1_epi32(at.offset)));
}

// The steps and minima of number `i` of those that a block has.
struct StepAndMin {
  __m512 step;
  __m512 min;
};
template <Encoding E>
TIERD_VNNI_INLINE StepAndMin step_and_min(const uint8_t* block, uint32_t i) {
  StepAndMin r;
  if constexpr (E == Encoding::mxfp4) {
    const __m512i exponent = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block)));
    // 2^(exponent - 128), of which the least two are subnormal.
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), exponent);
    const __mmask16 is_subnormal = _mm512_cmplt_epi32_mask(exponent, _mm512_set1_epi32(2));
    r.step = _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_subnormal, normal, subnormal));
  } else {
    r.step = load_halves(block);
  }
  r.min = _mm512_setzero_ps();
  if constexpr (has_min(E)) r.min = load_halves(block + 2 * kGroupRows);
  if constexpr (has_scales(E)) {
    r.step = _mm512_mul_ps(r.step, integers16<E>(block, scale_bits(E, i)));
    if constexpr (has_min(E)) r.min = _mm512_mul_ps(r.min, integers16<E>(block, min_bits(E, i)));
  } else if constexpr (has_min(E)) {
    r.min = _mm512_sub_ps(_mm512_set1_ps(-0.0F), r.min);
  }
  return r;
}

// y[t][g] += the products of a run of G groups by N tokens; `x_block`: the run's activations.
template <Encoding E, int G, int N>
TIERD_VNNI_INLINE void add_run(const uint8_t* const (&w)[G], const Int8Rows& x, size_t x_block, uint32_t run,
                               __m512 (&y)[N][G]) {
  constexpr uint32_t kStepsOfRun = kQuantBlock / scaled_values(E);
  constexpr uint32_t kScaledFours = scaled_values(E) / 4;
  const int8_t* q = x.q + x_block * kQuantBlock;
#pragma GCC unroll 2
  for (uint32_t part = 0; part < kStepsOfRun; ++part) {
    int32_t sums[N];  // of the activations
#pragma GCC unroll 6
    for (int t = 0; t < N; ++t) {
      const size_t at = t * x.blocks + x_block;
      sums[t] = kStepsOfRun == 1 ? x.sum[at] : part == 0 ? x.first_sum[at] : x.sum[at] - x.first_sum[at];
    }
    __m512i p[N][G];
#pragma GCC unroll 6
    for (int t = 0; t < N; ++t) {
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) p[t][g] = _mm512_set1_epi32(-code_offset(E) * sums[t]);
    }
#pragma GCC unroll 8
    for (uint32_t four = part * kScaledFours; four < (part + 1) * kScaledFours; ++four) {
      __m512i word[G];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) word[g] = entries<E>(w[g], run, four);
#pragma GCC unroll 6
      for (int t = 0; t < N; ++t) {
        const __m512i columns = broadcast4(q + t * x.cols + 4 * four);
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) p[t][g] = _mm512_dpbusd_epi32(p[t][g], word[g], columns);
      }
    }
    __m512 step[G], min[G];
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) {
      const StepAndMin both = step_and_min<E>(w[g], run * kStepsOfRun + part);
      step[g] = both.step;
      min[g] = both.min;
    }
#pragma GCC unroll 6
    for (int t = 0; t < N; ++t) {
      const float dx = x.scale[t * x.blocks + x_block];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        y[t][g] =
            _mm512_fmadd_ps(_mm512_mul_ps(step[g], _mm512_set1_ps(dx)), _mm512_cvtepi32_ps(p[t][g]), y[t][g]);
        if constexpr (has_min(E))
          y[t][g] = _mm512_fnmadd_ps(min[g], _mm512_set1_ps(dx * static_cast<float>(sums[t])), y[t][g]);
      }
    }
  }
}

// y[t][g] += the products of one block.
template <Encoding E, int G, int N>
TIERD_VNNI_INLINE void add_block(const uint8_t* const (&w)[G], const Int8Rows& x, size_t block,
                                 __m512 (&y)[N][G]) {
  constexpr uint32_t kRuns = runs_of(E);
  if constexpr (kRuns == 1) {
    add_run<E, G, N>(w, x, block, 0, y);
  } else {
#pragma GCC unroll 1
    for (uint32_t run = 0; run < kRuns; ++run) add_run<E, G, N>(w, x, block * kRuns + run, run, y);
  }
}

}  // namespace tierd::avx512_vnni
