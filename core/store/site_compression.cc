#include "core/store/site_compression.h"

#include "core/base/check.h"

namespace tierd {

std::optional<SiteCompression> SiteCompression::of(Compression compression, const NeuronCodec* codec,
                                                   const StoredSite& site) {
  if (compression == Compression::none) return std::nullopt;
  if (compression == Compression::codec) {
    TIERD_CHECK(codec != nullptr);
    return SiteCompression(codec);
  }
  const auto bitmap = Bitmap::of(site.cut, site.encodings);
  return bitmap ? std::optional(SiteCompression(*bitmap)) : std::nullopt;
}

Result<uint32_t> SiteCompression::measure(std::span<const std::byte> dense,
                                          std::vector<std::byte>& kept) const {
  if (const auto* bitmap = std::get_if<Bitmap>(&by_))
    return static_cast<uint32_t>(compressed_bytes(*bitmap, dense));
  TIERD_TRY(compress(dense, kept));
  return static_cast<uint32_t>(kept.size());
}

Status SiteCompression::compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const {
  if (const auto* codec = std::get_if<const NeuronCodec*>(&by_)) return (*codec)->compress(dense, kept);
  const Bitmap& bitmap = std::get<Bitmap>(by_);
  kept.resize(compressed_bytes(bitmap, dense));
  tierd::compress(bitmap, dense, kept);
  return {};
}

Status SiteCompression::expand(std::span<const std::byte> kept, std::span<std::byte> dense) const {
  if (const auto* codec = std::get_if<const NeuronCodec*>(&by_)) return (*codec)->expand(kept, dense);
  return decompress(std::get<Bitmap>(by_), kept, dense);
}

}  // namespace tierd
