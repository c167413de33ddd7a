// Columns with int8: the columns of a run, strip by strip (core/model/layout/column.h). Private to
// tiers/compute; the order of reduction stands in kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/layout/column.h"
#include "core/model/layout/encoding.h"

namespace tierd {

inline constexpr uint32_t kColumnsInWord = 4;
// Tokens that share a read of the columns: their sums fit into the registers.
inline constexpr uint32_t kColumnTokens = 2;
// A block whose greatest factor is below this counts as zero: its reciprocal would not be finite.
inline constexpr float kLeastFactor = 0x1p-100f;

// What the columns of a run are multiplied with in the blocks of a strip, for one token.
struct alignas(64) ColumnFactors {
  int32_t words[kPartialNeurons / kColumnsInWord][kStripBlocks];  // int8 of four columns, the first lowest
  int32_t start[kStripBlocks];                                    // minus what stored offsets add to a sum
  float scale[kStripBlocks];
  float inverse[kStripBlocks];  // what made int8 of them
};

// Stored, unsigned weights minus this are their values.
constexpr int32_t column_offset(Encoding e) {
  return e == Encoding::q4_0 ? 8 : 128;
}

// The same bytes of each of some columns, asked for a line at a time while others are computed: columns lie
// apart, and a processor foresees only what is read in order.
class ColumnsAhead {
 public:
  ColumnsAhead(std::span<const std::byte* const> columns, uint64_t begin, uint64_t end)
      : column_(columns.data()), last_(column_ + columns.size()), begin_(begin), end_(end), at_(begin) {}

  uint64_t lines() const {
    return static_cast<uint64_t>(last_ - column_) * ((end_ - begin_ + kLine - 1) / kLine);
  }
  void ask(uint32_t lines) {
    // Few lines can be on their way into the first cache: asking for those is no faster than to wait for
    // them.
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

// `blocks` blocks of a strip of `words` x 4 columns, whose values lie at columns[i]:
// y[t*ldy + c] = fma(scale, float(start + sum of factor * stored weight), y[t*ldy + c]) for `tokens` of at
// most kColumnTokens.
struct ColumnStrip {
  const uint8_t* const* columns;
  uint32_t words;
  uint32_t blocks;
  const ColumnFactors* factors;  // [tokens]
  uint32_t tokens;
  float* y;
  size_t ldy;
  ColumnsAhead* ahead;  // or null
  uint32_t lines;       // to ask for meanwhile
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
