// A neuron of a forged store, compressed by the codec zstd.
#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/strategy/codec.h"
#include "tests/fuzz/target.h"

namespace tierd {
namespace {

std::unique_ptr<Codec> load() {
  auto codec = Codec::load(PluginPath({TIERD_PLUGIN_DIR}), "zstd", {}, "fuzz");
  TIERD_CHECK_MSG(codec.ok(), codec.error().line());
  return std::move(*codec);
}

}  // namespace

// The first byte is the neuron's size in units of 64 bytes.
void fuzz(std::string_view input) {
  static const std::unique_ptr<Codec> codec = load();
  if (input.empty()) return;
  // In memory of exactly this size, for AddressSanitizer.
  const std::vector<std::byte> kept(reinterpret_cast<const std::byte*>(input.data()) + 1,
                                    reinterpret_cast<const std::byte*>(input.data()) + input.size());
  std::vector<std::byte> dense(64 * uint64_t{static_cast<uint8_t>(input[0])});
  const Status expanded = codec->expand(kept, dense);
  if (!expanded.ok()) {
    TIERD_CHECK_MSG(expanded.code() == Code::corrupt, expanded.error().line());
    return;
  }
  std::vector<std::byte> again, back(dense.size());
  TIERD_CHECK(codec->compress(dense, again).ok() && codec->expand(again, back).ok() && back == dense);
}

}  // namespace tierd
