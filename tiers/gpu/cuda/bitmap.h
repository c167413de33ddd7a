// Neurons that are stored as bitmaps (core/model/layout/bitmap.h). The number of values before each tile of
// bits is counted first, so that a kernel that expands or multiplies a tile finds its values without reading
// the tiles before it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/agent/message.h"
#include "core/base/align.h"
#include "core/model/layout/bitmap.h"

namespace tierd::cuda {

// Tiles that one block counts, a thread each.
inline constexpr uint32_t kSegmentTiles = 256;
// The first segment count of a malformed neuron, whose bits announce more or fewer values than it has:
// kernels do not read its values. (No neuron has that many values.)
inline constexpr uint32_t kMalformed = ~0u;

// The bytes of a neuron, and how many of them are its bits.
struct NeuronSize {
  uint32_t bytes = 0;
  uint32_t bits = 0;
};

// Bytes of bits that a warp reads at once: the bits of 512 dense bytes.
constexpr uint32_t plain_tile(const Bitmap& bitmap) {
  return 64 / bitmap.element_bytes;
}
// The same in row groups, in which a step of q8_0 is a block of 32 columns.
constexpr uint32_t row_tile(const Bitmap& bitmap) {
  return bitmap.element_bytes == 1 ? 68 : plain_tile(bitmap);
}

// Units of an edition. All pointers are device pointers.
struct BitmapUnits {
  const std::byte* memory = nullptr;
  const Unit* units = nullptr;  // a unit begins at memory + place * 64
  uint32_t n_units = 0;
  const NeuronSize* sizes = nullptr;  // [neurons of the edition]; the bits fill whole bytes
  Bitmap bitmap = {};
  uint32_t tile = 0;   // bytes of bits, a multiple of 4
  uint32_t tiles = 0;  // of a unit, at most
  // [n_units x count_words(tiles)]: values before each tile, and before each segment, in the unit.
  uint32_t* counts = nullptr;
  uint32_t* malformed = nullptr;  // set to 1 if a unit is malformed; may be pinned memory

  static constexpr uint64_t count_words(uint64_t tiles) { return tiles + divide_up(tiles, kSegmentTiles); }
  constexpr uint32_t segments() const { return (tiles + kSegmentTiles - 1) / kSegmentTiles; }
  constexpr uint64_t counts_at(uint32_t number) const { return number * count_words(tiles); }
};
// Fills the counts.
cudaError_t count_bitmaps(const BitmapUnits& units, cudaStream_t stream);

// The destination of an expansion: contiguous, or a place for each unit.
struct ExpandedUnits {
  std::byte* memory = nullptr;
  Unit* units = nullptr;         // [n_units]: receives their numbers and contiguous places
  uint64_t dense_bytes = 0;      // of each unit, a multiple of 64; with `places` an upper bound
  const Unit* places = nullptr;  // [n_units] a unit goes to memory + place * 64; NULL: contiguous
};
// Requires count_bitmaps with tiles of plain_tile(). The destination of a malformed unit is not written.
cudaError_t expand_bitmaps(const BitmapUnits& units, const ExpandedUnits& expanded, cudaStream_t stream);

}  // namespace tierd::cuda
