// The number of checksums, a line feed, then manifest.json after its first line. Matching checksums are
// added, because mutations cannot guess them.
#include "core/store/manifest.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/store/manifest_json.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {
namespace {

constexpr std::string_view kFile = "manifest.json";
constexpr uint32_t kMostChecksums = 1u << 16;
constexpr std::string_view kChecksumsKey = "\"checksums\": \"";

// Replaces the checksum of the checksums in the text by the right one.
std::string fitting(std::string_view text, std::string_view checksums) {
  std::string fitted(text);
  const size_t at = fitted.find(kChecksumsKey);
  if (at != std::string::npos) {
    fitted.replace(std::min(at + kChecksumsKey.size(), fitted.size()), 16,
                   checksum_text(checksum(checksums)));
  }
  return fitted;
}

// Checks what a loader relies on without checking again.
void expect_sound(const Manifest& manifest) {
  for (const StoredSite& site : manifest.sites) {
    const uint64_t slot = site.slot_bytes();
    for (uint32_t neuron = 0; neuron < site.neurons(); ++neuron) {
      uint64_t bytes = 0;
      for (uint32_t piece = 0; piece < site.pieces; ++piece)
        bytes += manifest.extents.at(site.extent_of(neuron, piece)).bytes;
      TIERD_CHECK(site.neuron_bytes(neuron) <= std::min(bytes, slot));
    }
  }
  for (const ResidentTensor& tensor : manifest.resident) {
    TIERD_CHECK(tensor.rows * tensor.cols * sizeof(float) <= manifest.extents.at(tensor.extent).bytes);
  }
}

}  // namespace

void fuzz(std::string_view input) {
  uint32_t count = 0;
  const char* const end = input.data() + input.size();
  const auto [after, status] = std::from_chars(input.data(), end, count);
  if (status != std::errc() || after == end || *after != '\n' || count > kMostChecksums) return;
  const std::string checksums(count * sizeof(uint64_t), '\7');
  const std::string rest = fitting({after + 1, end}, checksums);
  const std::string text = "{\"xxh3\": \"" + checksum_text(checksum(rest)) + "\",\n" + rest;
  const auto manifest = parse_manifest(text, kFile, checksums, kFile);
  if (!manifest.ok()) return expect_one_line(manifest.error(), kFile);
  expect_sound(*manifest);
  if (manifest->has_vocab) expect_tokenizer(manifest->vocab, kFile, manifest->config.name);

  const std::string written = manifest_text(*manifest);
  const auto again = parse_manifest(written, kFile, checksum_bytes(*manifest), kFile);
  TIERD_CHECK_MSG(again.ok(), again.error().line());
  TIERD_CHECK_MSG(manifest_text(*again) == written, written);
}

}  // namespace tierd
