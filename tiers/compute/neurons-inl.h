// Single rows and columns, each in its slot: dots of rows in plain order, and sums of columns
// (core/model/layout/column.h) by float factors. See kernels.h for the order of reduction. Included once per
// target by simd.cc.
#if defined(TIERD_COMPUTE_NEURONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_NEURONS_INL_H
#undef TIERD_COMPUTE_NEURONS_INL_H
#else
#define TIERD_COMPUTE_NEURONS_INL_H
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/model/layout/for_encoding.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

inline constexpr uint32_t kDotColumns = kDotChains * kLanes16;
// Tokens whose sums fit into the registers beside a weight.
inline constexpr int kTokensAtOnce = kParts == 1 ? 4 : 1;
// Columns whose sums stay in the L1 cache while the neurons stream by.
inline constexpr uint32_t kStripColumns = 2048;

HWY_INLINE float one_half(const std::byte* p) {
  const hn::CappedTag<float, 4> f32;
  const hn::Rebind<uint16_t, decltype(f32)> u16;
  const hn::Rebind<hwy::float16_t, decltype(f32)> f16;
  uint16_t half;
  std::memcpy(&half, p, sizeof half);
  return hn::GetLane(hn::PromoteTo(f32, hn::BitCast(f16, hn::Set(u16, half))));
}

// A block of q8_0 or q4_0.
struct Block {
  const std::byte* scale;
  const std::byte* quants;
};

// Decodes half of a block.
template <Encoding E>
HWY_INLINE Lanes16 half_block(const Block& block, bool second) {
  const V scale = hn::Set(F32(), one_half(block.scale));
  Lanes16 r;
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kParts; ++i) {
    if constexpr (E == Encoding::q8_0) {
      const hn::Rebind<int8_t, F32> i8;
      const auto* q = reinterpret_cast<const int8_t*>(block.quants) + (second ? kLanes16 : 0);
      r.part[i] = hn::Mul(scale, hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(i8, q + i * kVector))));
    } else {
      const hn::Rebind<uint8_t, F32> u8;
      const auto bytes =
          hn::PromoteTo(I32(), hn::LoadU(u8, reinterpret_cast<const uint8_t*>(block.quants) + i * kVector));
      const auto nibbles = second ? hn::ShiftRight<4>(bytes) : hn::And(bytes, hn::Set(I32(), 15));
      r.part[i] = hn::Mul(scale, hn::ConvertTo(F32(), hn::Sub(nibbles, hn::Set(I32(), 8))));
    }
  }
  return r;
}

// Loads `count` values from `from` on, a multiple of 16; the remaining lanes are zero.
template <Encoding E>
HWY_INLINE Lanes16 floats16(const std::byte* values, uint32_t from, uint32_t count) {
  if constexpr (E == Encoding::f32) {
    return load_up_to_16(reinterpret_cast<const float*>(values) + from, count);
  } else if constexpr (E == Encoding::f16) {
    return load_up_to_16(reinterpret_cast<const uint16_t*>(values) + from, count);
  } else {
    uint16_t padded[kLanes16] = {};
    const auto* p = reinterpret_cast<const uint16_t*>(values) + from;
    if (count < kLanes16) p = static_cast<uint16_t*>(std::memcpy(padded, p, count * sizeof(uint16_t)));
    Lanes16 r;
#pragma GCC unroll 2
    for (uint32_t i = 0; i < kParts; ++i) r.part[i] = bf16_to_f32(p + i * kVector);
    return r;
  }
}

// The same for a row, in plain order.
template <Encoding E>
HWY_INLINE Lanes16 row16(const std::byte* row, uint32_t from, uint32_t count) {
  if constexpr (is_quantized(E)) {
    const std::byte* block = row + from / kQuantBlock * block_bytes(E);
    return half_block<E>({block, block + kScaleBytes}, from % kQuantBlock != 0);
  } else {
    return floats16<E>(row, from, count);
  }
}

// Neurons are apart in memory, and the processor's own prefetching restarts with each: while one neuron is
// computed, the same bytes of the next are prefetched. bytes_of_columns(): bytes of `columns` columns.
constexpr uint32_t bytes_of_columns(Encoding e, uint32_t columns) {
  return static_cast<uint32_t>(encoded_bytes(e, columns));
}
HWY_INLINE void fetch(const std::byte* from, uint32_t bytes) {
  constexpr uint32_t kCacheLine = 64;
  for (uint32_t i = 0; i < bytes; i += kCacheLine) hwy::Prefetch(from + i);
}

// Multiplies one row by N tokens; `next` is the row after it.
template <Encoding E, int N>
HWY_INLINE void dot_row(const std::byte* row, const std::byte* next, uint32_t cols, const float* x,
                        size_t ldx, float* y, size_t ldy) {
  constexpr uint32_t kFetched = bytes_of_columns(E, kDotColumns);
  Lanes16 sum[N][kDotChains];
  for (int t = 0; t < N; ++t) {
    for (uint32_t k = 0; k < kDotChains; ++k) sum[t][k] = set16(0);
  }
  const auto add = [&](uint32_t column, uint32_t chain, uint32_t count) HWY_ATTR {
    const Lanes16 w = row16<E>(row, column, count);
    for (int t = 0; t < N; ++t)
      sum[t][chain] = fma16(w, load_up_to_16(x + t * ldx + column, count), sum[t][chain]);
  };
  uint32_t column = 0;
  for (uint32_t at = 0; column + kDotColumns <= cols; column += kDotColumns, at += kFetched) {
    fetch(next + at, kFetched);
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kDotChains; ++k) add(column + k * kLanes16, k, kLanes16);
  }
  for (uint32_t k = 0; column < cols; column += kLanes16, ++k)
    add(column, k, std::min(kLanes16, cols - column));
  for (int t = 0; t < N; ++t)
    y[t * ldy] = sum16(add16(add16(sum[t][0], sum[t][1]), add16(sum[t][2], sum[t][3])));
}

template <Encoding E>
void dots_of(std::span<const std::byte* const> rows, uint32_t cols, const float* x, size_t ldx,
             uint32_t tokens, float* y, size_t ldy) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::byte* next = rows[std::min(i + 1, rows.size() - 1)];
    uint32_t t = 0;
    for (; t + kTokensAtOnce <= tokens; t += kTokensAtOnce)
      dot_row<E, kTokensAtOnce>(rows[i], next, cols, x + t * ldx, ldx, y + t * ldy + i, ldy);
    for (; t < tokens; ++t) dot_row<E, 1>(rows[i], next, cols, x + t * ldx, ldx, y + t * ldy + i, ldy);
  }
}

// 32 values: a whole block in encodings whose blocks share a scale.
struct Lanes32 {
  Lanes16 half[2];
};

// Decodes a block to the same values as half_block. A nibble has 16 values: they are computed once for each
// scale, then looked up.
template <Encoding E>
HWY_INLINE Lanes32 whole_block(const Block& block) {
  if constexpr (E == Encoding::q4_0 && kParts == 1) {
    const V scale = hn::Set(F32(), one_half(block.scale));
    const V values = hn::Mul(scale, hn::ConvertTo(F32(), hn::Iota(I32(), -8)));
    const hn::Rebind<uint8_t, F32> u8;
    const auto bytes = hn::PromoteTo(I32(), hn::LoadU(u8, reinterpret_cast<const uint8_t*>(block.quants)));
    const auto low = hn::IndicesFromVec(F32(), hn::And(bytes, hn::Set(I32(), 15)));
    const auto high = hn::IndicesFromVec(F32(), hn::ShiftRight<4>(bytes));
    return {{{{hn::TableLookupLanes(values, low)}}, {{hn::TableLookupLanes(values, high)}}}};
  } else {
    return {{half_block<E>(block, false), half_block<E>(block, true)}};
  }
}

// The place in a column of the values from `from` on, a multiple of 32.
template <Encoding E>
class ColumnPart {
 public:
  ColumnPart(uint32_t values, uint32_t from) {
    if constexpr (is_quantized(E)) {
      const BlockPlace place = place_in_column(E, values / kQuantBlock, from / kQuantBlock);
      scale_ = place.scale;
      values_ = place.quants;
    } else {
      values_ = encoded_bytes(E, from);
    }
  }
  HWY_INLINE Lanes32 all32(const std::byte* column) const {
    if constexpr (is_quantized(E)) {
      return whole_block<E>({column + scale_, column + values_});
    } else {
      return {
          {floats16<E>(column + values_, 0, kLanes16), floats16<E>(column + values_, kLanes16, kLanes16)}};
    }
  }
  // Loads 16 of the values, the first or the second 16; for floats at most `count`.
  HWY_INLINE Lanes16 some16(const std::byte* column, bool second, uint32_t count) const {
    if constexpr (is_quantized(E)) {
      return half_block<E>({column + scale_, column + values_}, second);
    } else {
      return floats16<E>(column + values_, second ? kLanes16 : 0, count);
    }
  }

 private:
  uint64_t scale_ = 0;
  uint64_t values_;
};

// Columns whose weights are added to a sum in a register: they share the cost of loading and storing it.
inline constexpr size_t kColumnsAtOnce = 4;

// Adds values [strip, strip + n) of N columns for one token; the columns `next` are computed after them.
template <Encoding E, size_t N>
HWY_INLINE void add_columns_at_once(uint32_t values, const std::byte* const* columns,
                                    const std::byte* const* next, uint32_t strip, uint32_t n, const float* h,
                                    float* partial) {
  Lanes16 weight[N];
  for (size_t i = 0; i < N; ++i) weight[i] = set16(h[i]);
  uint32_t c = 0;
  for (; c + kDotColumns <= n; c += kDotColumns) {
    for (size_t i = 0; i < N; ++i)
      fetch(next[i] + bytes_of_columns(E, strip + c), bytes_of_columns(E, kDotColumns));
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kDotColumns; k += kQuantBlock) {
      const ColumnPart<E> part(values, strip + c + k);
      float* out = partial + c + k;
      Lanes16 low = load16(out), high = load16(out + kLanes16);
#pragma GCC unroll 4
      for (size_t i = 0; i < N; ++i) {
        const Lanes32 w = part.all32(columns[i]);
        low = fma16(weight[i], w.half[0], low);
        high = fma16(weight[i], w.half[1], high);
      }
      store16(low, out);
      store16(high, out + kLanes16);
    }
  }
  for (; c < n; c += kLanes16) {
    const uint32_t in_block = c % kQuantBlock;
    const ColumnPart<E> part(values, strip + c - in_block);
    Lanes16 sum = load16(partial + c);
    for (size_t i = 0; i < N; ++i)
      sum = fma16(weight[i], part.some16(columns[i], in_block != 0, std::min(kLanes16, n - c)), sum);
    store16(sum, partial + c);
  }
}

// One token: a few columns at a time, so that each is read sequentially.
template <Encoding E>
HWY_INLINE void add_to_one(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, float* y) {
  const std::span<const std::byte* const> columns = run.columns;
  float partial[kStripColumns];
  for (uint32_t strip = first; strip < last; strip += kStripColumns) {
    const uint32_t n = std::min(kStripColumns, last - strip);
    std::fill_n(partial, align_up(n, kLanes16), 0.0f);
    size_t i = 0;
    for (; i + kColumnsAtOnce <= columns.size(); i += kColumnsAtOnce) {
      const size_t next = std::min(i + kColumnsAtOnce, columns.size() - kColumnsAtOnce);
      add_columns_at_once<E, kColumnsAtOnce>(run.values, &columns[i], &columns[next], strip, n, h + i,
                                             partial);
    }
    for (; i < columns.size(); ++i) {
      const size_t next = std::min(i + 1, columns.size() - 1);
      add_columns_at_once<E, 1>(run.values, &columns[i], &columns[next], strip, n, h + i, partial);
    }
    for (uint32_t c = 0; c < n; c += kLanes16) {
      const uint32_t count = std::min(kLanes16, n - c);
      store_up_to_16(add16(load_up_to_16(y + strip + c, count), load16(partial + c)), y + strip + c, count);
    }
  }
}

// N tokens and up to 64 outputs: the sums stay in registers, the weights in the L1 cache.
template <Encoding E, int N>
HWY_INLINE void add_tile(const ColumnRun& run, uint32_t first, uint32_t count, const float* h, size_t ldh,
                         float* y, size_t ldy) {
  static_assert(kDotColumns == 2 * kQuantBlock);
  Lanes16 partial[N][kDotChains];
  for (int t = 0; t < N; ++t) {
    for (uint32_t k = 0; k < kDotChains; ++k) partial[t][k] = set16(0);
  }
  const uint32_t parts = (count + kLanes16 - 1) / kLanes16;
  const ColumnPart<E> part[] = {{run.values, first},
                                {run.values, count > kQuantBlock ? first + kQuantBlock : first}};
  for (size_t i = 0; i < run.columns.size(); ++i) {
    for (uint32_t k = 0; k < parts; ++k) {
      const Lanes16 w =
          part[k / 2].some16(run.columns[i], k % 2 != 0, std::min(kLanes16, count - k * kLanes16));
      for (int t = 0; t < N; ++t) partial[t][k] = fma16(set16(h[t * ldh + i]), w, partial[t][k]);
    }
  }
  for (int t = 0; t < N; ++t) {
    for (uint32_t k = 0; k < parts; ++k) {
      float* out = y + t * ldy + first + k * kLanes16;
      const uint32_t n = std::min(kLanes16, count - k * kLanes16);
      store_up_to_16(add16(load_up_to_16(out, n), partial[t][k]), out, n);
    }
  }
}

template <Encoding E>
void add_weighted_of(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, size_t ldh,
                     uint32_t tokens, float* y, size_t ldy) {
  if (tokens == 1) return add_to_one<E>(run, first, last, h, y);
  for (uint32_t at = first; at < last; at += kDotColumns) {
    const uint32_t count = std::min(kDotColumns, last - at);
    uint32_t t = 0;
    for (; t + kTokensAtOnce <= tokens; t += kTokensAtOnce)
      add_tile<E, kTokensAtOnce>(run, at, count, h + t * ldh, ldh, y + t * ldy, ldy);
    for (; t < tokens; ++t) add_tile<E, 1>(run, at, count, h + t * ldh, ldh, y + t * ldy, ldy);
  }
}

void dots(Encoding e, std::span<const std::byte* const> rows, uint32_t cols, const float* x, size_t ldx,
          uint32_t tokens, float* y, size_t ldy) {
  for_encoding(e, [&](auto encoding) {
    if constexpr (has_columns(encoding)) return dots_of<encoding>(rows, cols, x, ldx, tokens, y, ldy);
    TIERD_CHECK_MSG(false, name(encoding()));
  });
}

void add_weighted(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, size_t ldh,
                  uint32_t tokens, float* y, size_t ldy) {
  TIERD_CHECK(run.columns.size() <= kPartialNeurons && first % kQuantBlock == 0);
  for_encoding(run.encoding, [&](auto encoding) {
    if constexpr (has_columns(encoding))
      return add_weighted_of<encoding>(run, first, last, h, ldh, tokens, y, ldy);
    TIERD_CHECK_MSG(false, name(encoding()));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
