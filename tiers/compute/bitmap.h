// Bitmaps (core/model/layout/bitmap.h) for kernels, which take a neuron's values piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/layout/bitmap.h"

namespace tierd {

// The values of a neuron that are not taken yet. No byte behind `end` is read.
struct BitmapValues {
  const std::byte* at;
  const std::byte* end;
};

// Writes `elements` elements to `out`: the next value for each bit that is set, else the bitmap's zero;
// `bits` begins with their bits. Returns the address behind the last value taken, or nullptr if there are too
// few values. Any thread; no alignment.
using ExpandBitmap = const std::byte* (*)(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                                          uint64_t elements, std::byte* out);

// The most tokens of a product for which reading the weights is the bottleneck.
inline constexpr uint32_t kFewTokens = 4;

// Returns how many bits are set in `bytes` bytes, which is the number of values that they announce.
uint64_t count_bits(const std::byte* bits, uint64_t bytes);

// Expands one element after the other: the naive twin, and the last elements of each fast path.
const std::byte* expand_bitmap_plainly(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                                       uint64_t elements, std::byte* out);

// Expands all of a neuron. False: its size is not what its bits announce; `dense` is undefined. Any thread.
bool expand_neuron(ExpandBitmap expand, const Bitmap& bitmap, std::span<const std::byte> compressed,
                   std::span<std::byte> dense);

// Expanded bytes, aligned to cache lines; the vector keeps its capacity.
struct alignas(64) ExpandedLine {
  std::byte bytes[64];
};
using ExpandedLines = std::vector<ExpandedLine>;
// Returns room for at least `bytes` bytes.
inline std::byte* room_for(ExpandedLines& lines, uint64_t bytes) {
  const uint64_t needed = divide_up(bytes, sizeof(ExpandedLine));
  if (lines.size() < needed) lines.resize(needed);
  return lines.data()->bytes;
}

struct ComputeKernels;
struct QuantizedRows;

// Rows in row groups, as a bitmap: `bits` begins with the bits of the first group.
struct BitmapRows {
  Encoding encoding;
  const std::byte* bits;
  BitmapValues values;
  uint32_t groups;
  uint32_t cols;
};
// The same bits as the kernels' matmul and matmul_int8. For many tokens, and for int8, some groups at a time
// are expanded into `dense`, which keeps its capacity. Returns the same as gemv_bitmap.
const std::byte* multiply_bitmap(const ComputeKernels& kernels, const BitmapRows& rows, const float* x,
                                 size_t ldx, uint32_t tokens, float* y, size_t ldy, ExpandedLines& dense);
const std::byte* multiply_bitmap_int8(const ComputeKernels& kernels, const BitmapRows& rows,
                                      const QuantizedRows& x, uint32_t first, uint32_t tokens, float* y,
                                      size_t ldy, ExpandedLines& dense);

}  // namespace tierd
