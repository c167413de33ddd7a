#include "core/store/compressed_packer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/checksum.h"
#include "core/store/compressed_plan.h"
#include "core/store/site_compression.h"

namespace tierd {

CompressedPacker::CompressedPacker(const TensorSource& source, const Manifest& plan, const NeuronCodec* codec)
    : source_(source),
      plan_(plan),
      codec_(codec),
      dense_plan_(dense_plan(plan)),
      dense_(source, dense_plan_) {
  for (const StoredSite* site : plan_.stored()) {
    if (site->compression != Compression::none) compressed_.push_back(site);
  }
}

const StoredSite* CompressedPacker::compressed_site_of(uint32_t extent) const {
  const auto after = std::ranges::upper_bound(compressed_, extent, {},
                                              [](const StoredSite* site) { return site->first_extent; });
  if (after == compressed_.begin() || extent >= (*std::prev(after))->end_extent()) return nullptr;
  return *std::prev(after);
}

Status CompressedPacker::pack(uint32_t first, uint32_t count, std::span<std::byte> out,
                              std::span<uint64_t> checksums) const {
  const StoredSite* const site = compressed_site_of(first);
  if (site == nullptr) return dense_.pack(first, count, out, checksums);
  TIERD_TRY(compress_run(*site, first, count, out));
  for (uint32_t i = 0; i < count; ++i) {
    const Extent& extent = plan_.extents[first + i];
    checksums[i] = checksum(out.subspan(extent.offset - plan_.extents[first].offset, extent.bytes));
  }
  return {};
}

Error CompressedPacker::changed(const StoredSite& site, uint32_t neuron, uint64_t bytes) const {
  if (codec_ == nullptr)
    return {Code::corrupt, source_.path(), "changed while it was converted; convert it again"};
  return {Code::plugin_fault, source_.path(),
          fmt::format("{} neuron {}: codec '{}' compresses it to {} bytes, but to {} when it was measured; "
                      "if the model has not changed since, the codec does not return the same result twice",
                      site.name, neuron, codec_->name(), bytes, site.compressed[neuron])};
}

Status CompressedPacker::compress_run(const StoredSite& site, uint32_t first, uint32_t count,
                                      std::span<std::byte> out) const {
  const std::span<const Extent> from = std::span(dense_plan_.extents).subspan(first, count);
  const std::span<const Extent> to = std::span(plan_.extents).subspan(first, count);
  std::vector<std::byte> dense(from.back().offset + from.back().bytes - from.front().offset);
  std::vector<uint64_t> ignored(count);
  TIERD_TRY(dense_.pack(first, count, dense, ignored));
  const SiteCompression by = *SiteCompression::of(site.compression, codec_, site);
  std::vector<std::byte> kept;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t neuron = site.held_by(first + i)->neuron;
    const std::span<const std::byte> bytes =
        std::span(dense).subspan(from[i].offset - from.front().offset, site.dense_bytes(neuron));
    const auto extent = out.subspan(to[i].offset - to.front().offset, to[i].bytes);
    TIERD_TRY(by.compress(bytes, kept));
    if (kept.size() != site.compressed[neuron]) return changed(site, neuron, kept.size());
    std::ranges::copy(kept, extent.begin());
    std::ranges::fill(extent.subspan(kept.size()), std::byte{0});
  }
  return {};
}

}  // namespace tierd
