// Block encodings by int8 activations with AVX-512 VNNI: one 512-bit vector holds four columns of 16 rows,
// and one instruction multiplies it with four columns of a token, broadcast.
#include "tiers/compute/kernel_sets.h"

#if defined(__x86_64__)

#include <span>

#include "core/base/check.h"
#include "core/model/layout/for_encoding.h"
#include "tiers/compute/blocks_avx512.h"
#include "tiers/compute/int8_avx512.h"
#include "tiers/compute/strips.h"

namespace tierd::avx512_vnni {
namespace {

constexpr uint32_t kPrefetchBytes = 4096;  // ahead of the gemv; measured, see README.md
constexpr uint32_t kTileTokens = 6;        // 2 groups x 6 tokens: 12 integer sums and 12 float sums of 32

template <Encoding E>
constexpr uint32_t kBlockBytes = kGroupRows* block_bytes(E);

// sums[g*group_stride + t*token_stride + r] += `blocks` blocks of G groups by N tokens.
template <Encoding E, int G, int N, bool kPrefetch>
TIERD_VNNI void multiply(const uint8_t* weights, size_t group_bytes_, uint32_t blocks, Int8Rows x,
                         float* sums, size_t group_stride, size_t token_stride) {
  __m512 y[N][G];
#pragma GCC unroll 16
  for (int t = 0; t < N; ++t) {
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) y[t][g] = _mm512_loadu_ps(sums + g * group_stride + t * token_stride);
  }
  const uint8_t* w[G];
  for (int g = 0; g < G; ++g) w[g] = weights + g * group_bytes_;
  for (uint32_t b = 0; b < blocks; ++b) {
    if constexpr (kPrefetch) {
      for (int g = 0; g < G; ++g) {
#pragma GCC unroll 9
        for (uint32_t i = 0; i < kBlockBytes<E>; i += kChunk)
          _mm_prefetch(w[g] + kPrefetchBytes + i, _MM_HINT_T0);
      }
    }
    add_block<E, G, N>(w, x, b, y);
    for (int g = 0; g < G; ++g) w[g] += kBlockBytes<E>;
  }
#pragma GCC unroll 16
  for (int t = 0; t < N; ++t) {
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) _mm512_storeu_ps(sums + g * group_stride + t * token_stride, y[t][g]);
  }
}

using Multiply = void (*)(const uint8_t*, size_t, uint32_t, Int8Rows, float*, size_t, size_t);

template <Encoding E, int G, bool kPrefetch>
constexpr Multiply kMultiply[kTileTokens] = {multiply<E, G, 1, kPrefetch>, multiply<E, G, 2, kPrefetch>,
                                             multiply<E, G, 3, kPrefetch>, multiply<E, G, 4, kPrefetch>,
                                             multiply<E, G, 5, kPrefetch>, multiply<E, G, 6, kPrefetch>};

// The weights are read once, straight from memory.
template <Encoding E>
void few_tokens(const uint8_t* weights, uint32_t groups, const Int8Rows& x, uint32_t tokens, float* y,
                size_t ldy) {
  const size_t stride = x.cols / block_values(E) * kBlockBytes<E>;
  for (uint32_t t = 0; t < tokens; ++t) std::memset(y + t * ldy, 0, groups * kGroupRows * sizeof(float));
  const auto blocks = static_cast<uint32_t>(x.cols / block_values(E));
  for (uint32_t g = 0; g < groups; ++g) {
    kMultiply<E, 1, true>[tokens - 1](weights + g * stride, 0, blocks, x, y + g * kGroupRows, 0, ldy);
  }
}

template <Encoding E>
class Strips {
 public:
  static constexpr uint32_t kPanelCols = 1024;
  static constexpr uint32_t kTileTokens = avx512_vnni::kTileTokens;
  static constexpr uint32_t kGroupsAtOnce = 2;

  Strips(const uint8_t* weights, const Int8Rows& x) : weights_(weights), x_(x) {}

  void open_panel(uint32_t group, uint32_t count, uint32_t col, uint32_t cols) {
    block_ = col / kQuantBlock;
    blocks_ = cols / block_values(E);
    panel_ = bytes(group, col, cols).data();
    multiply_ = count == 2 ? kMultiply<E, 2, false> : kMultiply<E, 1, false>;
  }
  std::span<const uint8_t> bytes(uint32_t group, uint32_t col, uint32_t cols) const {
    return {weights_ + group * group_stride() + col / block_values(E) * kBlockBytes<E>,
            cols / block_values(E) * kBlockBytes<E>};
  }
  void tile(uint32_t token, uint32_t count, float* sums, size_t sums_stride) const {
    multiply_[count - 1](panel_, group_stride(), blocks_, x_.from(token, block_), sums, sums_stride,
                         kGroupRows);
  }

 private:
  size_t group_stride() const { return x_.cols / block_values(E) * kBlockBytes<E>; }

  const uint8_t* weights_;
  Int8Rows x_;
  const uint8_t* panel_ = nullptr;
  uint32_t block_ = 0, blocks_ = 0;
  const Multiply* multiply_ = nullptr;
};

template <Encoding E>
void matmul_of(const uint8_t* weights, uint32_t groups, const Int8Rows& x, uint32_t tokens, float* y,
               size_t ldy) {
  if (tokens <= kTileTokens) return few_tokens<E>(weights, groups, x, tokens, y, ldy);
  Strips<E> strips(weights, x);
  matmul_by_strips(strips, groups, static_cast<uint32_t>(x.cols), tokens, y, ldy);
}

}  // namespace

void matmul_int8(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const QuantizedRows& x,
                 uint32_t first, uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(cols % block_values(e) == 0 && x.cols == cols && first + tokens <= x.rows);
  if (tokens == 0) return;
  const Int8Rows all = {x.q.data(),         x.scale.data(), x.sum.data(),
                        x.first_sum.data(), cols,           cols / kQuantBlock};
  const Int8Rows rows = all.from(first, 0);
  const auto* w = reinterpret_cast<const uint8_t*>(weights);
  for_encoding(e, [&](auto encoding) {
    if constexpr (is_quantized(encoding)) return matmul_of<encoding>(w, groups, rows, tokens, y, ldy);
    TIERD_CHECK_MSG(false, name(encoding()));
  });
}

}  // namespace tierd::avx512_vnni
#endif
