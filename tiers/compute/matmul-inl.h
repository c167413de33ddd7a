// y = W x with activations in f32, for all encodings. See kernels.h for the order of reduction.
// Included once per target by simd.cc.
#if defined(TIERD_COMPUTE_MATMUL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_MATMUL_INL_H
#undef TIERD_COMPUTE_MATMUL_INL_H
#else
#define TIERD_COMPUTE_MATMUL_INL_H
#endif

#include <array>
#include <span>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/model/layout/for_encoding.h"
#include "tiers/compute/bitmap.h"
#include "tiers/compute/blocks-inl.h"
#include "tiers/compute/lanes-inl.h"
#include "tiers/compute/strips.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

inline constexpr uint32_t kBlockScales = kGroupRows * 2;  // bytes of a block's 16 scales
inline constexpr uint32_t kMostGemvBytes = 4096;          // bytes that a gemv expands at a time

// Whether products are scaled, instead of the weights.
constexpr bool scales_products(Encoding e) {
  return e == Encoding::q8_0 || e == Encoding::q4_0;
}

template <Encoding E>
constexpr uint32_t kBlockBytes = kQuantBlock / block_values(E) * block_bytes(E) * kGroupRows;

// Returns byte kShift/8 of each 32-bit lane of `chunk` as the signed weight of q8_0.
template <int kShift>
HWY_INLINE V value_q8_0(hn::Vec<U32> chunk) {
  const auto signed_bytes = hn::BitCast(I32(), hn::Xor(chunk, hn::Set(U32(), 0x80808080u)));
  return hn::ConvertTo(F32(), hn::ShiftRight<24>(hn::ShiftLeft<24 - kShift>(signed_bytes)));
}
// Returns the four bits at kShift of each 32-bit lane as the signed weight of q4_0.
template <int kShift>
HWY_INLINE V value_q4_0(hn::Vec<U32> chunk) {
  const auto shifted = hn::ShiftRight<kShift>(chunk);
#if HWY_TARGET == HWY_AVX3
  // vpermps uses only the low four bits of each index, so neither masking nor conversion is needed.
  const __m512 values = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  return V{_mm512_permutexvar_ps(shifted.raw, values)};
#else
  const auto nibble = hn::BitCast(I32(), hn::And(shifted, hn::Set(U32(), 15)));
  return hn::ConvertTo(F32(), hn::Sub(nibble, hn::Set(I32(), 8)));
#endif
}

// Returns column `col` of 16 rows of a float encoding.
template <Encoding E>
HWY_INLINE Lanes16 one_column(const uint8_t* block, uint32_t col) {
  const uint8_t* p = block + col * kGroupRows * block_bytes(E);
  if constexpr (E == Encoding::f32) return load16(reinterpret_cast<const float*>(p));
  const auto* halves = reinterpret_cast<const uint16_t*>(p);
  if constexpr (E == Encoding::f16) return load16(halves);
  Lanes16 r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) r.part[i] = bf16_to_f32(halves + i * kVector);
  return r;
}

HWY_INLINE Lanes16 block_scales(const uint8_t* block) {
  return load16(reinterpret_cast<const uint16_t*>(block));
}

// Decodes columns 4*step … 4*step + 3 of a block of 32; block encodings without their scale. For q4_0, steps
// 4 … 7 are the high nibbles of the chunks of steps 0 … 3.
template <Encoding E, bool kHigh>
HWY_INLINE void four_columns(const uint8_t* block, uint32_t step, Lanes16 (&out)[4]) {
  if constexpr (is_quantized(E)) {
    const uint8_t* chunk = block + kBlockScales + (kHigh ? step - 4 : step) * kChunk;
#pragma GCC unroll 2
    for (uint32_t i = 0; i < kParts; ++i) {
      const auto bits = hn::LoadU(U32(), reinterpret_cast<const uint32_t*>(chunk) + i * kVector);
      if constexpr (E == Encoding::q8_0) {
        out[0].part[i] = value_q8_0<0>(bits);
        out[1].part[i] = value_q8_0<8>(bits);
        out[2].part[i] = value_q8_0<16>(bits);
        out[3].part[i] = value_q8_0<24>(bits);
      } else {
        constexpr int kFirst = kHigh ? 4 : 0;
        out[0].part[i] = value_q4_0<kFirst>(bits);
        out[1].part[i] = value_q4_0<kFirst + 8>(bits);
        out[2].part[i] = value_q4_0<kFirst + 16>(bits);
        out[3].part[i] = value_q4_0<kFirst + 24>(bits);
      }
    }
  } else {
#pragma GCC unroll 4
    for (uint32_t k = 0; k < 4; ++k) out[k] = one_column<E>(block, 4 * step + k);
  }
}

// Blocks whose chains of 32 multiply-adds run side by side in a gemv: one chain takes 128 cycles, longer than
// reading a block from memory.
template <Encoding E>
constexpr int kChains = E == Encoding::f32 ? 2 : 4;

// p[b][t] += four columns of B blocks of one group by N tokens.
template <Encoding E, int N, int B, bool kHigh>
HWY_INLINE void add_step(const uint8_t* block, const float* x, size_t ldx, uint32_t step,
                         Lanes16 (&p)[B][N]) {
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
    Lanes16 w[4];
    four_columns<E, kHigh>(block + b * kBlockBytes<E>, step, w);
#pragma GCC unroll 4
    for (uint32_t k = 0; k < 4; ++k) {
#pragma GCC unroll 4
      for (int t = 0; t < N; ++t) {
        p[b][t] = fma16(w[k], set16(x[t * ldx + b * kQuantBlock + 4 * step + k]), p[b][t]);
      }
    }
  }
}
template <Encoding E, int N, int B, bool kHigh>
HWY_INLINE void add_steps(const uint8_t* block, const float* x, size_t ldx, uint32_t first, uint32_t last,
                          Lanes16 (&p)[B][N]) {
  if constexpr (N == 1) {  // unrolling saves a tenth of the gemv
#pragma GCC unroll 8
    for (uint32_t step = first; step < last; ++step) add_step<E, N, B, kHigh>(block, x, ldx, step, p);
  } else {
    for (uint32_t step = first; step < last; ++step) add_step<E, N, B, kHigh>(block, x, ldx, step, p);
  }
}

// sums[t] += the next B blocks of one group by N tokens, block after block.
template <Encoding E, int N, int B>
HWY_INLINE void add_blocks(const uint8_t* block, const float* x, size_t ldx, Lanes16 (&sums)[N]) {
  Lanes16 p[B][N];
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) p[b][t] = set16(0);
  }
  if constexpr (E == Encoding::q4_0) {
    add_steps<E, N, B, false>(block, x, ldx, 0, 4, p);
    add_steps<E, N, B, true>(block, x, ldx, 4, 8, p);
  } else {
    add_steps<E, N, B, false>(block, x, ldx, 0, 8, p);
  }
#pragma GCC unroll 4
  for (int b = 0; b < B; ++b) {
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      if constexpr (is_quantized(E)) {
        sums[t] = fma16(block_scales(block + b * kBlockBytes<E>), p[b][t], sums[t]);
      } else {
        sums[t] = add16(sums[t], p[b][t]);
      }
    }
  }
}

// The source of a gemv's blocks of a group. next<kBytes>() returns the next kBytes, or NULL if they are
// missing; rest(bytes): fewer, at the end.
struct DenseBlocks {
  const uint8_t* at;

  template <uint32_t kBytes>
  HWY_INLINE const uint8_t* next() {
    for (uint32_t i = 0; i < kBytes; i += 64) __builtin_prefetch(at + kPrefetchBytes + i);
    return std::exchange(at, at + kBytes);
  }
  const uint8_t* rest(uint32_t bytes) { return std::exchange(at, at + bytes); }
};

// Blocks of a bitmap, expanded into the L1 cache: some hundred cycles of work at a time.
struct BitmapBlocks {
  BitmapBlocks(ExpandBitmap expand_, const Bitmap& bitmap_, const std::byte* bits_, BitmapValues values_)
      : expand(expand_), bitmap(bitmap_), bits(bits_), values(values_) {}

  template <uint32_t kBytes>
  HWY_INLINE const uint8_t* next() {
    static_assert(kBytes <= sizeof dense);
    for (uint32_t i = 0; i < kBytes / 2; i += 64) __builtin_prefetch(values.at + kPrefetchBytes + i);
    return rest(kBytes);
  }
  const uint8_t* rest(uint32_t bytes) {
    values.at = expand(bitmap, bits, values, bytes / bitmap.element_bytes, dense);
    bits += bitmap.bits_bytes(bytes);
    return values.at == nullptr ? nullptr : reinterpret_cast<const uint8_t*>(dense);
  }

  ExpandBitmap expand;
  Bitmap bitmap;
  const std::byte* bits;
  BitmapValues values;
  alignas(64) std::byte dense[kMostGemvBytes];
};

// Multiplies one group by N tokens, with weights straight from memory: for few tokens, for which reading
// weights is the bottleneck. Returns false if blocks are missing.
template <Encoding E, int N, class Blocks>
HWY_INLINE bool multiply_few(Blocks& blocks, uint32_t cols, const float* x, size_t ldx, float* y,
                             size_t ldy) {
  constexpr int kAtOnce = N == 1 ? kChains<E> : 1;
  Lanes16 sums[N];
#pragma GCC unroll 4
  for (int t = 0; t < N; ++t) sums[t] = set16(0);
  uint32_t c = 0;
  for (; c + kAtOnce * kQuantBlock <= cols; c += kAtOnce * kQuantBlock) {
    const uint8_t* const block = blocks.template next<kAtOnce * kBlockBytes<E>>();
    if (block == nullptr) return false;
    add_blocks<E, N, kAtOnce>(block, x + c, ldx, sums);
  }
  for (; c + kQuantBlock <= cols; c += kQuantBlock) {
    const uint8_t* const block = blocks.rest(kBlockBytes<E>);
    if (block == nullptr) return false;
    add_blocks<E, N, 1>(block, x + c, ldx, sums);
  }
  if constexpr (!is_quantized(E)) {
    if (c < cols) {
      const uint8_t* const block = blocks.rest((cols - c) * kGroupRows * block_bytes(E));
      if (block == nullptr) return false;
      for (int t = 0; t < N; ++t) {
        Lanes16 p = set16(0);
        for (uint32_t j = c; j < cols; ++j) p = fma16(one_column<E>(block, j - c), set16(x[t * ldx + j]), p);
        sums[t] = add16(sums[t], p);
      }
    }
  }
  for (int t = 0; t < N; ++t) store16(sums[t], y + t * ldy);
  return true;
}

template <Encoding E, int N>
void multiply_few_dense(const uint8_t* block, uint32_t cols, const float* x, size_t ldx, float* y,
                        size_t ldy) {
  DenseBlocks blocks{block};
  (void)multiply_few<E, N>(blocks, cols, x, ldx, y, ldy);
}

template <Encoding E, int N>
const std::byte* multiply_few_bitmap(ExpandBitmap expand, const std::byte* bits, BitmapValues values,
                                     uint32_t groups, uint32_t cols, const float* x, size_t ldx, float* y,
                                     size_t ldy) {
  BitmapBlocks blocks(expand, *Bitmap::of(E, true), bits, values);
  for (uint32_t g = 0; g < groups; ++g) {
    if (!multiply_few<E, N>(blocks, cols, x, ldx, y + g * kGroupRows, ldy)) return nullptr;
  }
  return blocks.values.at;
}

// The many-token kernel: kGroups groups of decoded weights by N tokens, so that two vectors of weights are
// multiplied by N of activations. Weights are f32, [col][16]; `scales` is [block][16] or null for floats.
struct Panel {
  const float* weights;
  size_t weights_stride;  // from group to group
  const float* scales;
  size_t scales_stride;
  uint32_t cols;
};

template <int G, int N, bool kScaled>
void multiply_panel(const Panel& panel, const float* x, size_t ldx, float* sums, size_t sums_stride) {
  const float* w = panel.weights;
  for (uint32_t c = 0; c < panel.cols; c += kQuantBlock, x += kQuantBlock) {
    const uint32_t count = std::min(kQuantBlock, panel.cols - c);
    for (int t = 0; t < N; ++t) {  // the next tile's activations
      __builtin_prefetch(x + (t + N) * ldx);
      __builtin_prefetch(x + (t + N) * ldx + kQuantBlock / 2);
    }
    Lanes16 p[N][G];
#pragma GCC unroll 12
    for (int t = 0; t < N; ++t) {
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) p[t][g] = set16(0);
    }
    for (uint32_t j = 0; j < count; ++j, w += kLanes16) {
      Lanes16 column[G];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) column[g] = load16(w + g * panel.weights_stride);
#pragma GCC unroll 12
      for (int t = 0; t < N; ++t) {
        const Lanes16 xt = set16(x[t * ldx + j]);
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) p[t][g] = fma16(column[g], xt, p[t][g]);
      }
    }
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) {
      const Lanes16 d =
          kScaled ? load16(panel.scales + g * panel.scales_stride + c / kQuantBlock * kLanes16) : set16(0);
#pragma GCC unroll 12
      for (int t = 0; t < N; ++t) {
        float* to = sums + g * sums_stride + t * kLanes16;
        const Lanes16 sum = load16(to);
        store16(kScaled ? fma16(d, p[t][g], sum) : add16(sum, p[t][g]), to);
      }
    }
  }
}

using MultiplyPanel = void (*)(const Panel&, const float*, size_t, float*, size_t);

// 24 of 32 vectors hold sums on AVX-512, 12 of 16 on AVX2.
inline constexpr uint32_t kGroupsAtOnce = kParts == 1 ? 2 : 1;
inline constexpr uint32_t kTileTokens = kParts == 1 ? 12 : 6;

template <int G, bool kScaled, int... N>
constexpr std::array<MultiplyPanel, sizeof...(N)> panel_kernels(std::integer_sequence<int, N...>) {
  return {multiply_panel<G, N + 1, kScaled>...};
}
template <int G, bool kScaled>
constexpr auto kPanelKernels = panel_kernels<G, kScaled>(std::make_integer_sequence<int, kTileTokens>());

template <Encoding E>
class FloatStrips {
 public:
  static constexpr uint32_t kPanelCols = 128;
  static_assert(kPanelCols % kQuantBlock == 0 && kSuperBlock % kPanelCols == 0);
  static constexpr uint32_t kTileTokens = HWY_NAMESPACE::kTileTokens;
  static constexpr uint32_t kGroupsAtOnce = HWY_NAMESPACE::kGroupsAtOnce;

  FloatStrips(const uint8_t* weights, uint32_t cols, const float* x, size_t ldx)
      : weights_(weights), group_bytes_(group_bytes(E, cols)), x_(x), ldx_(ldx) {}

  void open_panel(uint32_t group, uint32_t count, uint32_t col, uint32_t cols) {
    const uint8_t* from = bytes(group, col, cols).data();
    col_ = col;
    panel_ = {decoded_, kPanelCols * kLanes16, scales_, kPanelCols / kQuantBlock * kLanes16, cols};
    if constexpr (E == Encoding::f32) {
      panel_.weights = reinterpret_cast<const float*>(from);
      panel_.weights_stride = group_bytes_ / sizeof(float);
    } else if constexpr (is_quantized(E) && !scales_products(E)) {
      for (uint32_t g = 0; g < count; ++g)
        decode_columns<E>(from + g * group_bytes_, col, cols, decoded_ + g * panel_.weights_stride);
    } else {
      for (uint32_t g = 0; g < count; ++g) {
        decode(from + g * group_bytes_, cols, decoded_ + g * panel_.weights_stride,
               scales_ + g * panel_.scales_stride);
      }
    }
    kernels_ = count == 2 ? kPanelKernels<2, scales_products(E)>.data()
                          : kPanelKernels<1, scales_products(E)>.data();
  }
  std::span<const uint8_t> bytes(uint32_t group, uint32_t col, uint32_t cols) const {
    return {weights_ + group * group_bytes_ + group_bytes(E, col),
            group_bytes(E, static_cast<uint32_t>(align_up(cols, block_values(E))))};
  }
  void tile(uint32_t token, uint32_t count, float* sums, size_t sums_stride) const {
    kernels_[count - 1](panel_, x_ + token * ldx_ + col_, ldx_, sums, sums_stride);
  }

 private:
  static void decode(const uint8_t* block, uint32_t cols, float* out, float* scales) {
    uint32_t c = 0;
    for (; c + kQuantBlock <= cols; c += kQuantBlock, block += kBlockBytes<E>) {
      for (uint32_t step = 0; step < kQuantBlock / 4; ++step) {
        Lanes16 w[4];
        if (E == Encoding::q4_0 && step >= 4) {
          four_columns<E, true>(block, step, w);
        } else {
          four_columns<E, false>(block, step, w);
        }
        for (uint32_t k = 0; k < 4; ++k, out += kLanes16) store16(w[k], out);
      }
      if constexpr (is_quantized(E)) store16(block_scales(block), scales + c / kQuantBlock * kLanes16);
    }
    if constexpr (!is_quantized(E)) {
      for (uint32_t j = c; j < cols; ++j, out += kLanes16) store16(one_column<E>(block, j - c), out);
    }
  }

  const uint8_t* weights_;
  size_t group_bytes_;
  const float* x_;
  size_t ldx_;
  uint32_t col_ = 0;
  Panel panel_{};
  const MultiplyPanel* kernels_ = nullptr;
  alignas(64) float decoded_[kGroupsAtOnce * kPanelCols * kLanes16];
  alignas(64) float scales_[kGroupsAtOnce * kPanelCols / kQuantBlock * kLanes16];
};

using MultiplyFew = void (*)(const uint8_t*, uint32_t, const float*, size_t, float*, size_t);

template <Encoding E, int N>
constexpr MultiplyFew multiply_few_of() {
  if constexpr (is_quantized(E) && !scales_products(E)) {
    return multiply_few_of_values<E, N>;
  } else {
    return multiply_few_dense<E, N>;
  }
}

template <Encoding E>
void matmul_of(const uint8_t* weights, uint32_t groups, uint32_t cols, const float* x, size_t ldx,
               uint32_t tokens, float* y, size_t ldy) {
  constexpr MultiplyFew kFew[] = {multiply_few_of<E, 1>(), multiply_few_of<E, 2>(), multiply_few_of<E, 3>(),
                                  multiply_few_of<E, 4>()};
  if (tokens > std::size(kFew)) {
    FloatStrips<E> strips(weights, cols, x, ldx);
    return matmul_by_strips(strips, groups, cols, tokens, y, ldy);
  }
  for (uint32_t g = 0; g < groups; ++g) {
    kFew[tokens - 1](weights + g * group_bytes(E, cols), cols, x, ldx, y + g * kGroupRows, ldy);
  }
}

void matmul(Encoding e, const std::byte* weights, uint32_t groups, uint32_t cols, const float* x, size_t ldx,
            uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(cols % block_values(e) == 0);
  if (tokens == 0) return;
  const auto* w = reinterpret_cast<const uint8_t*>(weights);
  for_encoding(e, [&](auto encoding) { matmul_of<encoding>(w, groups, cols, x, ldx, tokens, y, ldy); });
}

template <Encoding E>
const std::byte* gemv_bitmap_of(ExpandBitmap expand, const std::byte* bits, BitmapValues values,
                                uint32_t groups, uint32_t cols, const float* x, size_t ldx, uint32_t tokens,
                                float* y, size_t ldy) {
  constexpr decltype(&multiply_few_bitmap<E, 1>) kFew[kFewTokens] = {
      multiply_few_bitmap<E, 1>, multiply_few_bitmap<E, 2>, multiply_few_bitmap<E, 3>,
      multiply_few_bitmap<E, 4>};
  return kFew[tokens - 1](expand, bits, values, groups, cols, x, ldx, y, ldy);
}

const std::byte* gemv_bitmap(ExpandBitmap expand, Encoding e, const std::byte* bits, BitmapValues values,
                             uint32_t groups, uint32_t cols, const float* x, size_t ldx, uint32_t tokens,
                             float* y, size_t ldy) {
  TIERD_CHECK(tokens >= 1 && tokens <= kFewTokens && cols % block_values(e) == 0);
  switch (e) {
    case Encoding::f32:
      return gemv_bitmap_of<Encoding::f32>(expand, bits, values, groups, cols, x, ldx, tokens, y, ldy);
    case Encoding::f16:
      return gemv_bitmap_of<Encoding::f16>(expand, bits, values, groups, cols, x, ldx, tokens, y, ldy);
    case Encoding::bf16:
      return gemv_bitmap_of<Encoding::bf16>(expand, bits, values, groups, cols, x, ldx, tokens, y, ldy);
    case Encoding::q8_0:
      return gemv_bitmap_of<Encoding::q8_0>(expand, bits, values, groups, cols, x, ldx, tokens, y, ldy);
    default:
      TIERD_CHECK_MSG(false, name(e));
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
