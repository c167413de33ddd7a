// Expands compressed neurons after they have landed, for memories that hold them expanded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/compressed_extents.h"
#include "core/base/result.h"
#include "tiers/compute/bitmap.h"

namespace tierd {

class Expansion {
 public:
  // Expands no extent.
  Expansion() = default;
  // The objects that `compressed` refers to must outlive this; `kernel` belongs to a kernel set.
  Expansion(std::span<const CompressedExtents> compressed, ExpandBitmap kernel)
      : compressed_(compressed.begin(), compressed.end()), expand_(kernel) {}

  // Returns the bytes of the expanded neuron of an extent; 0: the neuron is not compressed.
  uint32_t bytes(uint32_t extent) const;
  // `landed` is the whole extent; `into` has bytes() bytes. Errors: corrupt, if it is malformed, and a
  // codec's.
  Status expand(uint32_t extent, std::span<const std::byte> landed, std::span<std::byte> into) const;

 private:
  const CompressedExtents* of(uint32_t extent) const;

  std::vector<CompressedExtents> compressed_;  // in the order of their extents
  ExpandBitmap expand_ = nullptr;
};

}  // namespace tierd
