// K-quants by int8 activations, for int8_avx512.cc: run after run of 32 columns. Private to tiers/compute.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "tiers/compute/int8_avx512.h"
#include "tiers/compute/k_chunks.h"

namespace tierd::avx512_vnni {

template <Encoding E>
TIERD_VNNI_INLINE __m512i k_chunk(const uint8_t* super_block, uint32_t chunk) {
  return _mm512_loadu_si512(super_block + KChunks<E>::kFirstChunk + chunk * kChunk);
}
// Returns the bits of `mask` in each byte, from bit `shift` on.
TIERD_VNNI_INLINE __m512i byte_bits(__m512i bytes, uint32_t shift, int mask) {
  return _mm512_and_si512(_mm512_srlv_epi32(bytes, _mm512_set1_epi32(static_cast<int>(shift))),
                          _mm512_set1_epi8(static_cast<char>(mask)));
}
TIERD_VNNI_INLINE __m512i with_high(__m512i low, __m512i high) {
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 4));
}
// Returns byte `byte` of each lane, signed, as a float.
TIERD_VNNI_INLINE __m512 byte_value(__m512i word, uint32_t byte) {
  const __m512i shift = _mm512_set1_epi32(24 - 8 * static_cast<int>(byte));
  return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_sllv_epi32(word, shift), 24));
}

// Returns the integers of four columns of a run, unsigned: those of q6_k are 32 too large.
template <Encoding E>
TIERD_VNNI_INLINE __m512i k_word(const uint8_t* super_block, uint32_t run, uint32_t c) {
  using Chunks = KChunks<E>;
  const __m512i low = byte_bits(k_chunk<E>(super_block, Chunks::low(run, c)), Chunks::low_shift(run), 15);
  if constexpr (!Chunks::kHasHigh) return low;
  const __m512i high = k_chunk<E>(super_block, Chunks::high(run, c));
  return with_high(low, byte_bits(high, Chunks::high_shift(run), Chunks::kHighMask));
}

// Returns d * scale of q6_k.
TIERD_VNNI_INLINE __m512 k_step(const uint8_t* super_block, uint32_t block) {
  constexpr auto kE = Encoding::q6_k;
  const __m512i scales = k_chunk<kE>(super_block, KChunks<kE>::kScales + block / 4);
  return _mm512_mul_ps(load_halves(super_block), byte_value(scales, block % 4));
}
// d * scale and dmin * min of q4_k and q5_k.
struct StepAndMin {
  __m512 step;
  __m512 min;
};
template <Encoding E>
TIERD_VNNI_INLINE StepAndMin k_step_and_min(const uint8_t* super_block, uint32_t run) {
  using Chunks = KChunks<E>;
  __m512i scales = k_chunk<E>(super_block, Chunks::kScales);
  __m512i mins = k_chunk<E>(super_block, Chunks::kScales + 1);
  if (run < 4) {
    scales = byte_bits(scales, 0, 63);
    mins = byte_bits(mins, 0, 63);
  } else {
    const __m512i low = k_chunk<E>(super_block, Chunks::kScales + 2);
    scales = with_high(byte_bits(low, 0, 15), byte_bits(scales, 6, 3));
    mins = with_high(byte_bits(low, 4, 15), byte_bits(mins, 6, 3));
  }
  return {_mm512_mul_ps(load_halves(super_block), byte_value(scales, run % 4)),
          _mm512_mul_ps(load_halves(super_block + Chunks::kFactorBytes), byte_value(mins, run % 4))};
}

// p[t][g] += the integer products of chunks [first, last) of a run. `q` is the run's first activation.
template <Encoding E, int G, int N>
TIERD_VNNI_INLINE void dot_chunks(const uint8_t* const (&w)[G], uint32_t run, uint32_t first, uint32_t last,
                                  const int8_t* q, size_t stride, __m512i (&p)[N][G]) {
#pragma GCC unroll 8
  for (uint32_t c = first; c < last; ++c) {
    __m512i word[G];
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) word[g] = k_word<E>(w[g], run, c);
#pragma GCC unroll 6
    for (int t = 0; t < N; ++t) {
      const __m512i four = broadcast4(q + t * stride + 4 * c);
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) p[t][g] = _mm512_dpbusd_epi32(p[t][g], word[g], four);
    }
  }
}

template <Encoding E, int G, int N>
TIERD_VNNI_INLINE void add_run_with_min(const uint8_t* const (&w)[G], const Int8Rows& x, size_t block,
                                        uint32_t run, __m512 (&y)[N][G]) {
  __m512i p[N][G];
#pragma GCC unroll 6
  for (int t = 0; t < N; ++t) {
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) p[t][g] = _mm512_setzero_si512();
  }
  dot_chunks<E, G, N>(w, run, 0, 8, x.q + block * kQuantBlock, x.cols, p);
  __m512 step[G], min[G];
#pragma GCC unroll 2
  for (int g = 0; g < G; ++g) {
    const StepAndMin both = k_step_and_min<E>(w[g], run);
    step[g] = both.step;
    min[g] = both.min;
  }
  add_scaled<G, N>(step, x, block, p, y);
#pragma GCC unroll 6
  for (int t = 0; t < N; ++t) {
    const size_t at = t * x.blocks + block;
    const __m512 sum = _mm512_set1_ps(x.scale[at] * static_cast<float>(x.sum[at]));
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) y[t][g] = _mm512_fnmadd_ps(min[g], sum, y[t][g]);
  }
}

template <int G, int N>
TIERD_VNNI_INLINE void add_run_q6_k(const uint8_t* const (&w)[G], const Int8Rows& x, size_t block,
                                    uint32_t run, __m512 (&y)[N][G]) {
#pragma GCC unroll 2
  for (uint32_t part = 0; part < 2; ++part) {
    __m512i p[N][G];
#pragma GCC unroll 6
    for (int t = 0; t < N; ++t) {
      const size_t at = t * x.blocks + block;
      const int32_t sum = part == 0 ? x.first_sum[at] : x.sum[at] - x.first_sum[at];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) p[t][g] = _mm512_set1_epi32(-32 * sum);
    }
    dot_chunks<Encoding::q6_k, G, N>(w, run, 4 * part, 4 * part + 4, x.q + block * kQuantBlock, x.cols, p);
    __m512 step[G];
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) step[g] = k_step(w[g], 2 * run + part);
    add_scaled<G, N>(step, x, block, p, y);
  }
}

// y[t][g] += the products of one super-block.
template <Encoding E, int G, int N>
TIERD_VNNI_INLINE void add_super_block(const uint8_t* const (&w)[G], const Int8Rows& x, size_t super_block,
                                       __m512 (&y)[N][G]) {
  constexpr uint32_t kRuns = kSuperBlock / kQuantBlock;
#pragma GCC unroll 1
  for (uint32_t run = 0; run < kRuns; ++run) {
    const size_t block = super_block * kRuns + run;
    if constexpr (E == Encoding::q6_k) {
      add_run_q6_k<G, N>(w, x, block, run, y);
    } else {
      add_run_with_min<E, G, N>(w, x, block, run, y);
    }
  }
}

}  // namespace tierd::avx512_vnni
