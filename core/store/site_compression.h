// The neurons of one site are kept in fewer bytes by a bitmap or by the store's codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/model/layout/bitmap.h"
#include "core/model/layout/neuron_codec.h"
#include "core/store/manifest.h"

namespace tierd {

class SiteCompression {
 public:
  // The compression that a store has, for a site of it; nothing where it has none, or where a bitmap does not
  // go with the site's encodings. `codec` is looked at where that is the compression; it outlives this.
  static std::optional<SiteCompression> of(Compression compression, const NeuronCodec* codec,
                                           const StoredSite& site);

  // The functions below may be called from any thread. Errors are those of the codec; bitmaps have none but
  // `corrupt`, of what is expanded.

  // Answers how many bytes a neuron takes. `kept` is room to work in.
  Result<uint32_t> measure(std::span<const std::byte> dense, std::vector<std::byte>& kept) const;
  // `kept` becomes the neuron's bytes, as many as `measure` says.
  Status compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const;
  // `kept` has those bytes and no padding.
  Status expand(std::span<const std::byte> kept, std::span<std::byte> dense) const;

 private:
  using By = std::variant<Bitmap, const NeuronCodec*>;
  explicit SiteCompression(By by) : by_(by) {}

  By by_;
};

}  // namespace tierd
