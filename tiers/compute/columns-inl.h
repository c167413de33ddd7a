// Columns with int8: the factors of the columns of a run, strip by strip. Included once per target by
// simd.cc.
#if defined(TIERD_COMPUTE_COLUMNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_COLUMNS_INL_H
#undef TIERD_COMPUTE_COLUMNS_INL_H
#else
#define TIERD_COMPUTE_COLUMNS_INL_H
#endif

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"
#include "tiers/compute/columns.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

static_assert(kStripBlocks == kLanes16);

// Adding this to a float rounds it to the nearest integer, half to even, in the low bits of the sum.
inline constexpr float kRounding = 0x1.8p23f;

// The factors of a strip's columns, h[i] * d[i][block], for one token.
class StripFactors {
 public:
  // scales[i]: the scales of `blocks` blocks (f16); factors beyond them are zero.
  HWY_INLINE StripFactors(std::span<const uint16_t* const> scales, uint32_t blocks, const float* h)
      : n_(scales.size()), padded_(align_up(n_, kColumnsInWord)) {
    for (size_t i = 0; i < n_; ++i)
      store16(mul16(set16(h[i]), load_up_to_16(scales[i], blocks)), factors_[i]);
    for (size_t i = n_; i < padded_; ++i) store16(set16(0), factors_[i]);
  }

  HWY_INLINE void make_int8(int32_t offset, ColumnFactors& out) const {
    // kSigns turns signed bytes into unsigned ones, so that none borrows; kGathered is the contribution of
    // kRounding to the words.
    constexpr uint32_t kOnce = std::bit_cast<uint32_t>(kRounding), kSigns = 0x80808080;
    constexpr uint32_t kGathered = kOnce * 0x01010101u;
    for (uint32_t block = 0; block < kStripBlocks; block += kVector) {
      // As integers, magnitudes have the same order, and NaN is the greatest of all.
      auto most = hn::Zero(U32());
      for (size_t i = 0; i < padded_; ++i)
        most = hn::Max(most, hn::BitCast(U32(), hn::Abs(factor(i, block))));
      const V greatest = hn::BitCast(F32(), most);
      const auto finite = hn::Le(greatest, hn::Set(F32(), std::numeric_limits<float>::max()));
      const auto some = hn::And(finite, hn::Ge(greatest, hn::Set(F32(), kLeastFactor)));
      const V scale = hn::IfThenElseZero(some, hn::Div(greatest, hn::Set(F32(), 127)));
      const V inverse = hn::IfThenElseZero(some, hn::Div(hn::Set(F32(), 127), greatest));
      hn::Store(hn::IfThenElse(finite, scale, hn::Set(F32(), std::numeric_limits<float>::quiet_NaN())), F32(),
                out.scale + block);
      hn::Store(inverse, F32(), out.inverse + block);
      auto sum = hn::Zero(U32());
      for (size_t first = 0; first < padded_; first += kColumnsInWord) {
        const auto at = [&](size_t i) HWY_ATTR {
          return hn::BitCast(U32(), rounded(factor(first + i, block), inverse));
        };
        const auto a = at(0), b = at(1), c = at(2), d = at(3);
        sum = hn::Add(sum, hn::Add(hn::Add(a, b), hn::Add(c, d)));
        const auto low = hn::Add(a, hn::ShiftLeft<8>(b)), high = hn::Add(c, hn::ShiftLeft<8>(d));
        const auto word = hn::Add(hn::Add(low, hn::ShiftLeft<16>(high)), hn::Set(U32(), kSigns - kGathered));
        hn::Store(hn::BitCast(I32(), hn::Xor(word, hn::Set(U32(), kSigns))), I32(),
                  out.words[first / kColumnsInWord] + block);
      }
      const auto factors = hn::Sub(sum, hn::Set(U32(), static_cast<uint32_t>(padded_) * kOnce));
      hn::Store(hn::Mul(hn::BitCast(I32(), factors), hn::Set(I32(), -offset)), I32(), out.start + block);
    }
  }

  // The loss of int8: squares[0] += the squared error of the factors, [1] += their squares.
  HWY_INLINE void add_squares(const ColumnFactors& made, double* squares) const {
    for (uint32_t block = 0; block < kStripBlocks; block += kVector) {
      const V scale = hn::Load(F32(), made.scale + block), inverse = hn::Load(F32(), made.inverse + block);
      V errors = hn::Zero(F32()), all = errors;
      for (size_t i = 0; i < n_; ++i) {
        const V value = factor(i, block);
        const V kept = hn::Sub(rounded(value, inverse), hn::Set(F32(), kRounding));
        const V error = hn::NegMulAdd(scale, kept, value);
        errors = hn::MulAdd(error, error, errors);
        all = hn::MulAdd(value, value, all);
      }
      squares[0] += double{hn::GetLane(hn::SumOfLanes(F32(), errors))};
      squares[1] += double{hn::GetLane(hn::SumOfLanes(F32(), all))};
    }
  }

 private:
  HWY_INLINE V factor(size_t i, uint32_t block) const { return hn::Load(F32(), factors_[i] + block); }
  static HWY_INLINE V rounded(V factor, V inverse) {
    return hn::MulAdd(factor, inverse, hn::Set(F32(), kRounding));
  }

  size_t n_;
  size_t padded_;
  alignas(64) float factors_[kPartialNeurons][kStripBlocks];
};

template <class Columns>
void add_weighted_int8(const ColumnRun& run, uint32_t first, uint32_t last, const float* h, size_t ldh,
                       uint32_t tokens, float* y, size_t ldy, double* squares) {
  const Encoding e = run.encoding;
  const std::span<const std::byte* const> columns = run.columns;
  TIERD_CHECK(columns.size() <= kPartialNeurons && first % kQuantBlock == 0);
  if (columns.empty() || first >= last) return;
  const uint32_t blocks = run.values / kQuantBlock;
  const uint32_t begin = first / kQuantBlock, end = (last + kQuantBlock - 1) / kQuantBlock;
  const size_t padded = align_up(columns.size(), kColumnsInWord);
  ColumnsAhead ahead(run.next, place_in_column(e, blocks, begin).scale, uint64_t{end} * block_bytes(e));
  const uint64_t lines = ahead.lines();
  const uint16_t* scales[kPartialNeurons];
  const uint8_t* quants[kPartialNeurons];
  ColumnFactors factors[kColumnTokens];
  // Blocks of one strip at a time: the whole strip, or the part of it that this call has.
  for (uint32_t block = begin, n; block < end; block += n) {
    n = std::min(end - block, kStripBlocks - block % kStripBlocks);
    const BlockPlace place = place_in_column(e, blocks, block);
    for (size_t i = 0; i < padded; ++i) {
      const std::byte* column = columns[i < columns.size() ? i : 0];
      scales[i] = reinterpret_cast<const uint16_t*>(column + place.scale);
      quants[i] = reinterpret_cast<const uint8_t*>(column + place.quants);
    }
    for (uint32_t t = 0; t < tokens; t += kColumnTokens) {
      const uint32_t at_once = std::min(kColumnTokens, tokens - t);
      for (uint32_t k = 0; k < at_once; ++k) {
        const StripFactors of_token({scales, columns.size()}, n, h + (t + k) * ldh);
        of_token.make_int8(column_offset(e), factors[k]);
        if (squares != nullptr && block == begin) of_token.add_squares(factors[k], squares);
      }
      const uint32_t output = block * kQuantBlock, outputs = std::min(last - output, n * kQuantBlock);
      ColumnStrip work = {quants,
                          static_cast<uint32_t>(padded / kColumnsInWord),
                          n,
                          factors,
                          at_once,
                          y + t * ldy + output,
                          ldy,
                          t == 0 ? &ahead : nullptr,
                          static_cast<uint32_t>((lines * n + end - begin - 1) / (end - begin))};
      if (outputs % kQuantBlock == 0) {
        Columns::add_strip(e, work);
        continue;
      }
      // The outputs end inside a block.
      alignas(64) float whole[kColumnTokens * kStripBlocks * kQuantBlock];
      float* const out = std::exchange(work.y, whole);
      work.ldy = kStripBlocks * kQuantBlock;
      for (uint32_t k = 0; k < at_once; ++k) std::copy_n(out + k * ldy, outputs, whole + k * work.ldy);
      Columns::add_strip(e, work);
      for (uint32_t k = 0; k < at_once; ++k) std::copy_n(whole + k * work.ldy, outputs, out + k * ldy);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
