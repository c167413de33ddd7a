// Axis `channel` with int8: what the columns of a run are multiplied with, for 16 blocks of outputs at a
// time. Included once per target by simd.cc.
#if defined(TIERD_COMPUTE_COLUMNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TIERD_COMPUTE_COLUMNS_INL_H
#undef TIERD_COMPUTE_COLUMNS_INL_H
#else
#define TIERD_COMPUTE_COLUMNS_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "core/base/check.h"
#include "tiers/compute/columns.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/lanes-inl.h"
#include "tiers/compute/neurons-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

static_assert(kStripBlocks == kLanes16 && kSampledOutputs == kStripBlocks * kQuantBlock);
using ScalesOfColumns = float[kPartialNeurons][kStripBlocks];

// The scales of up to 16 blocks of a column; zero behind the last.
template <class Columns>
HWY_INLINE void load_scales(Encoding e, const uint8_t* column, uint32_t blocks, float* scales) {
  if (blocks == kStripBlocks) return Columns::load_scales(e, column, scales);
  uint8_t whole[kStripBlocks * block_bytes(Encoding::q8_0)] = {};
  std::memcpy(whole, column, blocks * block_bytes(e));
  Columns::load_scales(e, whole, scales);
}

// In the last bits of a float as large as this lies the integer that was added to it, rounded to nearest
// even.
inline constexpr float kRounding = 0x1.8p23f;

// The factors of a strip's columns, and what makes int8 of them.
struct StripFactors {
  const ScalesOfColumns& scales;
  const float* h;  // [n]
  size_t n;

  HWY_INLINE V at(size_t i, uint32_t block) const {
    return hn::Mul(hn::Set(F32(), h[i]), hn::Load(F32(), scales[i] + block));
  }
  static HWY_INLINE V rounded(V factor, V inverse) {
    return hn::MulAdd(factor, inverse, hn::Set(F32(), kRounding));
  }
};

// What columns are multiplied with for one token.
HWY_INLINE void make_factors(const StripFactors& in, int32_t offset, ColumnFactors& out) {
  // What the words gather of kRounding, and what makes unsigned bytes of signed ones, so that none borrows.
  constexpr uint32_t kOnce = std::bit_cast<uint32_t>(kRounding), kSigns = 0x80808080;
  constexpr uint32_t kGathered = kOnce * 0x01010101u;
  for (uint32_t block = 0; block < kStripBlocks; block += kVector) {
    // As integers magnitudes have the same order, and NaN is the greatest of all.
    auto most = hn::Zero(U32());
    for (size_t i = 0; i < in.n; ++i) most = hn::Max(most, hn::BitCast(U32(), hn::Abs(in.at(i, block))));
    const V greatest = hn::BitCast(F32(), most);
    const auto finite = hn::Le(greatest, hn::Set(F32(), std::numeric_limits<float>::max()));
    const auto some = hn::And(finite, hn::Ge(greatest, hn::Set(F32(), kLeastFactor)));
    const V scale = hn::IfThenElseZero(some, hn::Div(greatest, hn::Set(F32(), 127)));
    const V inverse = hn::IfThenElseZero(some, hn::Div(hn::Set(F32(), 127), greatest));
    hn::Store(hn::IfThenElse(finite, scale, hn::Set(F32(), std::numeric_limits<float>::quiet_NaN())), F32(),
              out.scale + block);
    hn::Store(inverse, F32(), out.inverse + block);
    auto sum = hn::Zero(U32());
    for (size_t first = 0; first < in.n; first += kColumnsInWord) {
      auto word = hn::Zero(U32());
      for (size_t i = first + kColumnsInWord; i-- > first;) {
        const V rounded = i < in.n ? in.rounded(in.at(i, block), inverse) : hn::Set(F32(), kRounding);
        sum = hn::Add(sum, hn::BitCast(U32(), rounded));
        word = hn::Add(hn::ShiftLeft<8>(word), hn::BitCast(U32(), rounded));
      }
      word = hn::Xor(hn::Add(word, hn::Set(U32(), kSigns - kGathered)), hn::Set(U32(), kSigns));
      hn::Store(hn::BitCast(I32(), word), I32(), out.words[first / kColumnsInWord] + block);
    }
    const size_t padded = (in.n + kColumnsInWord - 1) / kColumnsInWord * kColumnsInWord;
    const auto factors = hn::Sub(sum, hn::Set(U32(), static_cast<uint32_t>(padded) * kOnce));
    hn::Store(hn::Mul(hn::BitCast(I32(), factors), hn::Set(I32(), -offset)), I32(), out.start + block);
  }
}

// What int8 makes of the factors: squares[0] += the squared error, [1] += the squares.
HWY_INLINE void add_squares(const StripFactors& in, const ColumnFactors& factors, double* squares) {
  for (uint32_t block = 0; block < kStripBlocks; block += kVector) {
    const V scale = hn::Load(F32(), factors.scale + block),
            inverse = hn::Load(F32(), factors.inverse + block);
    V errors = hn::Zero(F32()), all = errors;
    for (size_t i = 0; i < in.n; ++i) {
      const V value = in.at(i, block);
      const V rounded = hn::Sub(in.rounded(value, inverse), hn::Set(F32(), kRounding));
      const V error = hn::NegMulAdd(scale, rounded, value);
      errors = hn::MulAdd(error, error, errors);
      all = hn::MulAdd(value, value, all);
    }
    squares[0] += double{hn::GetLane(hn::SumOfLanes(F32(), errors))};
    squares[1] += double{hn::GetLane(hn::SumOfLanes(F32(), all))};
  }
}

// Strips whose scales are read before anything is computed: columns lie apart, and a processor foresees only
// what is read in order, so each is read along.
inline constexpr uint32_t kStripsAhead = 4;

template <class Columns>
void add_weighted_int8(Encoding e, const ChannelRun& run, uint32_t first, uint32_t last, const float* h,
                       size_t ldh, uint32_t tokens, float* y, size_t ldy, double* squares) {
  const std::span<const std::byte* const> rows = run.rows;
  TIERD_CHECK(rows.size() <= kPartialNeurons && first % kQuantBlock == 0);
  if (rows.empty()) return;
  alignas(64) ScalesOfColumns scales[kStripsAhead];
  ColumnFactors factors[kColumnTokens];
  const uint8_t* columns[kPartialNeurons];
  const uint8_t* ahead[kPartialNeurons];
  const size_t padded = (rows.size() + kColumnsInWord - 1) / kColumnsInWord * kColumnsInWord;
  constexpr uint32_t kStrip = kStripBlocks * kQuantBlock;
  const auto bytes_at = [e](uint32_t output) { return size_t{output} / kQuantBlock * block_bytes(e); };
  // As many strips each time as can be, the fewest first: what is next is never much more than this.
  const uint32_t all = (last - first + kStrip - 1) / kStrip;
  const uint32_t times = (all + kStripsAhead - 1) / kStripsAhead;
  for (uint32_t time = 0; time < times; ++time) {
    const uint32_t wide = first + time * all / times * kStrip;
    const uint32_t end = std::min(last, first + (time + 1) * all / times * kStrip);
    const uint32_t strips = (end - wide + kStrip - 1) / kStrip;
    const auto blocks_of = [&](uint32_t strip) {
      return (std::min(kStrip, end - strip) + kQuantBlock - 1) / kQuantBlock;
    };
    for (size_t i = 0; i < rows.size(); ++i) {
      for (uint32_t s = 0; s < strips; ++s) {
        const uint32_t strip = wide + s * kStrip;
        load_scales<Columns>(e, reinterpret_cast<const uint8_t*>(rows[i] + bytes_at(strip)), blocks_of(strip),
                             scales[s][i]);
      }
    }
    // What is wanted next lies in the same strips of other columns, or in later strips of these.
    const bool others = end == last;
    const std::span<const std::byte* const> next = others ? run.next : rows;
    for (uint32_t s = 0; s < strips; ++s) {
      const uint32_t strip = wide + s * kStrip;
      const uint32_t n = std::min(kStrip, end - strip);
      for (size_t i = 0; i < padded && !next.empty(); ++i) {
        const std::byte* column = next[std::min(i, next.size() - 1)];
        ahead[i] = reinterpret_cast<const uint8_t*>(column + bytes_at((others ? first : end) + s * kStrip));
      }
      for (size_t i = 0; i < padded; ++i)
        columns[i] = reinterpret_cast<const uint8_t*>(rows[i < rows.size() ? i : 0] + bytes_at(strip));
      for (uint32_t t = 0; t < tokens; t += kColumnTokens) {
        const uint32_t at_once = std::min(kColumnTokens, tokens - t);
        for (uint32_t k = 0; k < at_once; ++k) {
          const StripFactors of_token = {scales[s], h + (t + k) * ldh, rows.size()};
          make_factors(of_token, column_offset(e), factors[k]);
          if (squares != nullptr && strip == first) add_squares(of_token, factors[k], squares);
        }
        ColumnStrip work = {columns,
                            t == 0 && !next.empty() ? ahead : nullptr,
                            static_cast<uint32_t>(padded / kColumnsInWord),
                            blocks_of(strip),
                            factors,
                            at_once,
                            y + t * ldy + strip,
                            ldy};
        if (n % kQuantBlock == 0) {
          Columns::add_strip(e, work);
          continue;
        }
        // Rows that end inside of a block.
        alignas(64) float whole[kColumnTokens * kStrip];
        float* const out = std::exchange(work.y, whole);
        work.ldy = kStrip;
        for (uint32_t k = 0; k < at_once; ++k) std::copy_n(out + k * ldy, n, whole + k * kStrip);
        Columns::add_strip(e, work);
        for (uint32_t k = 0; k < at_once; ++k) std::copy_n(whole + k * kStrip, n, out + k * ldy);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#endif
