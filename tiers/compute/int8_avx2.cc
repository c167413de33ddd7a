// Block encodings by int8 activations with AVX2: the twin of int8_avx512.cc.
#include "tiers/compute/kernel_sets.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "core/base/check.h"
#include "core/model/layout/for_encoding.h"
#include "tiers/compute/blocks_avx2.h"

namespace tierd::avx2 {
namespace {

constexpr uint32_t kPrefetchBytes = 4096;
constexpr uint32_t kTileTokens = 3;

template <Encoding E>
constexpr uint32_t kBlockBytes = kGroupRows* block_bytes(E);

// Multiplies one group by N tokens; `y` points to its first row.
template <Encoding E, int N>
TIERD_AVX2 void multiply(const uint8_t* w, const Int8Rows& x, float* y, size_t ldy) {
  __m256 sums[N][2];
#pragma GCC unroll 3
  for (int t = 0; t < N; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_ps();
  for (size_t b = 0; b < x.blocks; b += runs_of(E), w += kBlockBytes<E>) {
#pragma GCC unroll 9
    for (uint32_t i = 0; i < kBlockBytes<E>; i += kChunk) {
      _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetchBytes + i, _MM_HINT_T0);
    }
    constexpr uint32_t kRuns = runs_of(E);
    if constexpr (kRuns == 1) {
      add_run<E, N>(w, x, b, 0, sums);
    } else {
#pragma GCC unroll 1
      for (uint32_t run = 0; run < kRuns; ++run) add_run<E, N>(w, x, b + run, run, sums);
    }
  }
  for (int t = 0; t < N; ++t) {
    for (uint32_t half = 0; half < 2; ++half) _mm256_storeu_ps(y + t * ldy + kHalfRows * half, sums[t][half]);
  }
}

using Multiply = void (*)(const uint8_t*, const Int8Rows&, float*, size_t);

template <Encoding E>
constexpr Multiply kMultiply[kTileTokens] = {multiply<E, 1>, multiply<E, 2>, multiply<E, 3>};

}  // namespace

void matmul_int8(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const QuantizedRows& x,
                 uint32_t first, uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(is_quantized(e) && cols % block_values(e) == 0 && x.cols == cols && first + tokens <= x.rows);
  const Int8Rows all = {x.q.data(),         x.scale.data(), x.sum.data(),
                        x.first_sum.data(), cols,           cols / kQuantBlock};
  const Multiply* multiply = for_encoding(e, [](auto encoding) -> const Multiply* {
    if constexpr (is_quantized(encoding)) return kMultiply<encoding>;
    return nullptr;
  });
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
