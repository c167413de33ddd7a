// Axis `channel` with int8: the columns of a run, by strips of blocks of outputs. Private to tiers/compute;
// the order of reduction stands in kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/layout/bundle.h"
#include "core/layout/encoding.h"

namespace tierd {

inline constexpr uint32_t kStripBlocks = 16;
inline constexpr uint32_t kColumnsInWord = 4;
// Tokens that share a read of the columns.
inline constexpr uint32_t kColumnTokens = 4;
// A block whose greatest factor is below this counts as zero: its reciprocal would not be finite.
inline constexpr float kLeastFactor = 0x1p-100f;

// Where __builtin_prefetch puts what is wanted next. Few lines can be on their way into the first cache:
// asking for those is no faster than to wait for them.
inline constexpr int kSecondCache = 2;

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

// A strip of `blocks` blocks of `words` x 4 columns, each beginning at columns[i]:
// y[t*ldy + c] = fma(scale, float(start + sum of factor * stored weight), y[t*ldy + c]) for `tokens` of at
// most kColumnTokens.
struct ColumnStrip {
  const uint8_t* const* columns;
  const uint8_t* const* ahead;  // as many, where bytes will be wanted next; or null
  uint32_t words;
  uint32_t blocks;
  const ColumnFactors* factors;  // [tokens]
  uint32_t tokens;
  float* y;
  size_t ldy;
};

#if defined(__x86_64__)
// Each set has: add_strip, and load_scales, which stores the scales (f32) of 16 blocks that lie one after the
// other.
namespace avx2 {
struct Columns {
  static void add_strip(Encoding e, const ColumnStrip& strip);
  static void load_scales(Encoding e, const uint8_t* blocks, float* scales);
};
}  // namespace avx2
namespace avx512_vnni {
struct Columns {
  static bool supported();  // its byte permutation is younger than VNNI
  static void add_strip(Encoding e, const ColumnStrip& strip);
  static void load_scales(Encoding e, const uint8_t* blocks, float* scales);
};
}  // namespace avx512_vnni
#endif

}  // namespace tierd
