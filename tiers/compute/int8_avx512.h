// Shared parts of the kernels of int8 activations with AVX-512 VNNI. Private to tiers/compute.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/model/layout/encoding.h"

#define TIERD_VNNI __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,fma,f16c")))
#define TIERD_VNNI_INLINE TIERD_VNNI __attribute__((always_inline)) inline

namespace tierd::avx512_vnni {

inline constexpr uint32_t kChunk = 64;  // bytes that one load reads of 16 rows

// Consecutive rows of quantized activations.
struct Int8Rows {
  const int8_t* q;
  const float* scale;
  const int32_t* sum;
  const int32_t* first_sum;
  size_t cols;
  size_t blocks;

  Int8Rows from(uint32_t row, uint32_t block) const {
    const size_t at = row * blocks + block;
    return {q + row * cols + block * kQuantBlock, scale + at, sum + at, first_sum + at, cols, blocks};
  }
};

TIERD_VNNI_INLINE __m512i broadcast4(const int8_t* q) {
  int32_t four;
  std::memcpy(&four, q, sizeof four);
  return _mm512_set1_epi32(four);
}

TIERD_VNNI_INLINE __m512 load_halves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

}  // namespace tierd::avx512_vnni
