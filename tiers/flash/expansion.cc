#include "tiers/flash/expansion.h"

#include <algorithm>

namespace tierd {

const CompressedExtents* Expansion::of(uint32_t extent) const {
  const auto after = std::ranges::upper_bound(compressed_, extent, {}, &CompressedExtents::first);
  if (after == compressed_.begin()) return nullptr;
  const CompressedExtents& before = *std::prev(after);
  return extent - before.first < before.bytes.size() ? &before : nullptr;
}

uint32_t Expansion::bytes(uint32_t extent) const {
  const CompressedExtents* const compressed = of(extent);
  return compressed != nullptr ? compressed->expanded[extent - compressed->first] : 0;
}

Status Expansion::expand(uint32_t extent, std::span<const std::byte> landed,
                         std::span<std::byte> into) const {
  const CompressedExtents& compressed = *of(extent);
  if (compressed.codec != nullptr) return compressed.codec->expand(landed, into);
  const uint32_t bytes = compressed.bytes[extent - compressed.first];
  if (bytes <= landed.size() && expand_neuron(expand_, compressed.bitmap, landed.first(bytes), into))
    return {};
  return Error{Code::corrupt, "bitmap", "has another number of values than its bits require"};
}

}  // namespace tierd
