// Columns with int8: the columns of a run, strip by strip (core/model/layout/column.h). Private to
// tiers/compute; kernels.h defines the order of reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/layout/column.h"
#include "core/model/layout/encoding.h"

namespace tierd {

inline constexpr uint32_t kColumnsInWord = 4;
// Tokens that share a read of the columns, so few that their sums fit into the registers.
inline constexpr uint32_t kColumnTokens = 2;
// A block whose greatest factor is below this counts as zero: its reciprocal would not be finite.
inline constexpr float kLeastFactor = 0x1p-100f;

// The factors of the columns of a run in the blocks of a strip, for one token.
struct alignas(64) ColumnFactors {
  int32_t words[kPartialNeurons / kColumnsInWord][kStripBlocks];  // int8 of four columns, the first lowest
  int32_t start[kStripBlocks];                                    // minus the contribution of the stored
                                                                  // offsets to a sum
  float scale[kStripBlocks];
  float inverse[kStripBlocks];  // the multiplier that made int8 of the factors
};

// Subtracting this from a stored, unsigned weight gives its value.
constexpr int32_t column_offset(Encoding e) {
  return e == Encoding::q4_0 ? 8 : 128;
}

// Prefetches the same bytes of several columns, line by line, while other columns are computed: columns are
// apart in memory, and the processor predicts only sequential reads.
class ColumnsAhead {
 public:
  ColumnsAhead(std::span<const std::byte* const> columns, uint64_t begin, uint64_t end)
      : column_(columns.data()), last_(column_ + columns.size()), begin_(begin), end_(end), at_(begin) {}

  uint64_t lines() const {
    return static_cast<uint64_t>(last_ - column_) * ((end_ - begin_ + kLine - 1) / kLine);
  }
  void ask(uint32_t lines) {
    // The L1 cache has few outstanding loads, so prefetching into it is no faster than waiting for the lines.
    constexpr int kSecondCache = 2;
    for (; lines != 0 && column_ != last_; --lines) {
      __builtin_prefetch(*column_ + at_, 0, kSecondCache);
      at_ += kLine;
      if (at_ < end_) continue;
      at_ = begin_;
      ++column_;
    }
  }

 private:
  static constexpr uint64_t kLine = 64;
  const std::byte* const* column_;
  const std::byte* const* last_;
  uint64_t begin_;
  uint64_t end_;
  uint64_t at_;
};

// Adds `blocks` blocks of a strip of `words` x 4 columns, with values at columns[i]: y[t*ldy + c] =
// fma(scale, float(start + sum of factor * stored weight), y[t*ldy + c]) for `tokens` of at most
// kColumnTokens.
struct ColumnStrip {
  const uint8_t* const* columns;
  uint32_t words;
  uint32_t blocks;
  const ColumnFactors* factors;  // [tokens]
  uint32_t tokens;
  float* y;
  size_t ldy;
  ColumnsAhead* ahead;  // or null
  uint32_t lines;       // to prefetch meanwhile
};

#if defined(__x86_64__)
namespace avx2 {
struct Columns {
  static void add_strip(Encoding e, const ColumnStrip& strip);
};
}  // namespace avx2
namespace avx512_vnni {
struct Columns {
  static void add_strip(Encoding e, const ColumnStrip& strip);
};
}  // namespace avx512_vnni
#endif

}  // namespace tierd
