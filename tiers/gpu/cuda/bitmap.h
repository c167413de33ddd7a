// Neurons that are kept as bitmaps (core/model/layout/bitmap.h): how many values lie before each tile of
// their bits is counted first, so that whoever expands or multiplies them finds its values without looking at
// what is before.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/agent/message.h"
#include "core/base/align.h"
#include "core/model/layout/bitmap.h"

namespace tierd::cuda {

// Tiles whose counts are a block's work, each of them a thread's.
inline constexpr uint32_t kSegmentTiles = 256;
// What the first segment of a neuron begins with whose bits say more or fewer values than it has: its values
// are not to be read. (A neuron has fewer.)
inline constexpr uint32_t kMalformed = ~0u;

// The bytes that a neuron takes, and how many of them are its bits.
struct NeuronSize {
  uint32_t bytes = 0;
  uint32_t bits = 0;
};

// Bytes of bits that a warp takes at once: those of 512 dense bytes.
constexpr uint32_t plain_tile(const Bitmap& bitmap) {
  return 64 / bitmap.element_bytes;
}
// The same in row groups, where a step of q8_0 is a block of 32 columns.
constexpr uint32_t row_tile(const Bitmap& bitmap) {
  return bitmap.element_bytes == 1 ? 68 : plain_tile(bitmap);
}

// Units of an edition. All pointers are of the device.
struct BitmapUnits {
  const std::byte* memory = nullptr;
  const Unit* units = nullptr;  // a unit begins at memory + place * 64
  uint32_t n_units = 0;
  const NeuronSize* sizes = nullptr;  // [neurons of the edition]; bits of whole bytes
  Bitmap bitmap = {};
  uint32_t tile = 0;   // bytes of bits, a multiple of 4
  uint32_t tiles = 0;  // of a unit, at most
  // [n_units x count_words(tiles)]: values before each tile, and before each segment, in the unit.
  uint32_t* counts = nullptr;
  uint32_t* malformed = nullptr;  // becomes 1 where a unit is; may be pinned

  static constexpr uint64_t count_words(uint64_t tiles) { return tiles + divide_up(tiles, kSegmentTiles); }
  constexpr uint32_t segments() const { return (tiles + kSegmentTiles - 1) / kSegmentTiles; }
  constexpr uint64_t counts_at(uint32_t number) const { return number * count_words(tiles); }
};
// Fills the counts.
cudaError_t count_bitmaps(const BitmapUnits& units, cudaStream_t stream);

// Where they are expanded to: one behind the other, or to places of their own.
struct ExpandedUnits {
  std::byte* memory = nullptr;
  Unit* units = nullptr;         // [n_units]: gets their numbers, and their places, one behind the other
  uint64_t dense_bytes = 0;      // of each, a multiple of 64; at most so many where they have places
  const Unit* places = nullptr;  // [n_units] a unit goes to memory + place * 64; NULL: one behind the other
};
// After count_bitmaps with tiles of plain_tile(). What a malformed unit has there stays as it was.
cudaError_t expand_bitmaps(const BitmapUnits& units, const ExpandedUnits& expanded, cudaStream_t stream);

}  // namespace tierd::cuda
