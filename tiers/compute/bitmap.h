// Bitmaps (core/model/layout/bitmap.h) as kernels take them: piece by piece, from the values that are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/layout/bitmap.h"

namespace tierd {

// What of a neuron's values was not taken yet. Nothing behind `end` is read.
struct BitmapValues {
  const std::byte* at;
  const std::byte* end;
};

// Writes `elements` elements to `out`: where a bit is set the next value, else the bitmap's zero; `bits`
// begins with theirs. Returns what follows the last value taken, or nullptr where there are too few. Any
// thread; no alignment.
using ExpandBitmap = const std::byte* (*)(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                                          uint64_t elements, std::byte* out);

// The tokens of a product, at most, in which reading the weights is the cost.
inline constexpr uint32_t kFewTokens = 4;

// How many bits are set in `bytes` bytes: the values of the elements that they stand for.
uint64_t count_bits(const std::byte* bits, uint64_t bytes);

// One element after the other: the naive twin, and the last elements of each fast path.
const std::byte* expand_bitmap_plainly(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                                       uint64_t elements, std::byte* out);

// All of a neuron. False: it is not what its bits say, and what was written means nothing. Any thread.
bool expand_neuron(ExpandBitmap expand, const Bitmap& bitmap, std::span<const std::byte> compressed,
                   std::span<std::byte> dense);

// What was expanded, in lines of a cache; it keeps its capacity.
struct alignas(64) ExpandedLine {
  std::byte bytes[64];
};
using ExpandedLines = std::vector<ExpandedLine>;
// At least so many bytes of it.
inline std::byte* room_for(ExpandedLines& lines, uint64_t bytes) {
  const uint64_t needed = divide_up(bytes, sizeof(ExpandedLine));
  if (lines.size() < needed) lines.resize(needed);
  return lines.data()->bytes;
}

struct ComputeKernels;
struct QuantizedRows;

// Rows in row groups, as a bitmap: `bits` begins with those of the first group.
struct BitmapRows {
  Encoding encoding;
  const std::byte* bits;
  BitmapValues values;
  uint32_t groups;
  uint32_t cols;
};
// As the kernels' matmul and matmul_int8, to the bit. For many tokens, and for int8, some groups at a time
// are expanded into `dense`, which keeps its capacity. The result is as gemv_bitmap's.
const std::byte* multiply_bitmap(const ComputeKernels& kernels, const BitmapRows& rows, const float* x,
                                 size_t ldx, uint32_t tokens, float* y, size_t ldy, ExpandedLines& dense);
const std::byte* multiply_bitmap_int8(const ComputeKernels& kernels, const BitmapRows& rows,
                                      const QuantizedRows& x, uint32_t first, uint32_t tokens, float* y,
                                      size_t ldy, ExpandedLines& dense);

}  // namespace tierd
