// Compressed neurons are expanded here when they land where a memory holds them so.
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
  // Nothing is expanded.
  Expansion() = default;
  // What `compressed` refers to outlives this; `kernel` is a kernel set's.
  Expansion(std::span<const CompressedExtents> compressed, ExpandBitmap kernel)
      : compressed_(compressed.begin(), compressed.end()), expand_(kernel) {}

  // Bytes that the neuron of an extent has once it is expanded; 0: it is not compressed.
  uint32_t bytes(uint32_t extent) const;
  // `landed` are all bytes of the extent, `into` has as many as bytes() says. Errors: corrupt, where they are
  // malformed, and a codec's.
  Status expand(uint32_t extent, std::span<const std::byte> landed, std::span<std::byte> into) const;

 private:
  const CompressedExtents* of(uint32_t extent) const;

  std::vector<CompressedExtents> compressed_;  // in the order of their extents
  ExpandBitmap expand_ = nullptr;
};

}  // namespace tierd
