// manifest.json behind its first line, which is added: a checksum cannot be guessed.
#include "core/store/manifest.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/store/checksum.h"
#include "core/store/manifest_json.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {
namespace {

constexpr std::string_view kFile = "manifest.json";

// What a loader counts on without asking again.
void expect_sound(const Manifest& manifest) {
  for (const StoredSite& site : manifest.sites) {
    for (uint32_t neuron = 0; neuron < site.neurons; ++neuron) {
      const Extent& extent = manifest.extents.at(site.first_extent + neuron);
      TIERD_CHECK(site.neuron_bytes(neuron) <= std::min(extent.bytes, site.slot_bytes()));
    }
  }
  for (const ResidentTensor& tensor : manifest.resident) {
    TIERD_CHECK(tensor.rows * tensor.cols * sizeof(float) <= manifest.extents.at(tensor.extent).bytes);
  }
}

}  // namespace

void fuzz(std::string_view input) {
  std::string text = "{\"xxh3\": \"" + checksum_text(checksum(input)) + "\",\n";
  text += input;
  const auto manifest = parse_manifest(text, kFile);
  if (!manifest.ok()) return expect_one_line(manifest.error(), kFile);
  expect_sound(*manifest);
  if (manifest->has_vocab) expect_tokenizer(manifest->vocab, kFile, manifest->config.name);

  const std::string written = manifest_text(*manifest);
  const auto again = parse_manifest(written, kFile);
  TIERD_CHECK_MSG(again.ok(), again.error().line());
  TIERD_CHECK_MSG(manifest_text(*again) == written, written);
}

}  // namespace tierd
