// Compresses the neurons of one site with a bitmap or with the store's codec.
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
  // Returns the compression of a site in a store with this compression; nothing if the store has none, or if
  // a bitmap cannot hold the site's encodings. `codec` is used only if it is the compression, and must
  // outlive the result.
  static std::optional<SiteCompression> of(Compression compression, const NeuronCodec* codec,
                                           const StoredSite& site);

  // The functions below may be called from any thread. Errors are the codec's; a bitmap's only error is
  // `corrupt`, from expand().

  // Returns the number of bytes that a neuron takes. `kept` is scratch memory.
  Result<uint32_t> measure(std::span<const std::byte> dense, std::vector<std::byte>& kept) const;
  // Writes the neuron's compressed bytes to `kept`, as many as `measure` returns.
  Status compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const;
  // Expands `kept`, which has exactly those bytes and no padding.
  Status expand(std::span<const std::byte> kept, std::span<std::byte> dense) const;

 private:
  using By = std::variant<Bitmap, const NeuronCodec*>;
  explicit SiteCompression(By by) : by_(by) {}

  By by_;
};

}  // namespace tierd
