// The data that an agent needs to expand compressed neurons as they land.
#pragma once

#include <cstdint>
#include <span>

#include "core/model/layout/bitmap.h"
#include "core/model/layout/neuron_codec.h"

namespace tierd {

// The extents of an edition whose neurons are compressed.
struct CompressedExtents {
  uint32_t first = 0;  // neuron i is extent first + i
  Bitmap bitmap = {};
  const NeuronCodec* codec = nullptr;  // NULL: they are bitmaps
  std::span<const uint32_t> bytes;     // [neurons] compressed bytes, from the beginning of the extent
  std::span<const uint32_t> expanded;  // [neurons] bytes once expanded
};

}  // namespace tierd
