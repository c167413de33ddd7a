// An agent needs to know this of compressed neurons to expand them as they land.
#pragma once

#include <cstdint>
#include <span>

#include "core/model/layout/bitmap.h"
#include "core/model/layout/neuron_codec.h"

namespace tierd {

// These are the extents of an edition whose neurons are compressed.
struct CompressedExtents {
  uint32_t first = 0;  // neuron i is extent first + i
  Bitmap bitmap = {};
  const NeuronCodec* codec = nullptr;  // NULL: they are bitmaps
  std::span<const uint32_t> bytes;     // [neurons] of each, from the beginning of its extent
  std::span<const uint32_t> expanded;  // [neurons] of each once it is expanded
};

}  // namespace tierd
