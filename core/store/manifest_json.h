// The text of manifest.json and the content of checksums.bin. The first line of the text holds the checksum
// of all that follows, so the file is valid JSON and proves that no bit of it has changed. The text includes
// the checksum of checksums.bin.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/store/manifest.h"

namespace tierd {

// The largest manifest. Parsing takes some times as much memory, and no more whatever the file holds.
inline constexpr uint64_t kMaxManifestBytes = 128ull << 20;

// The largest checksums.bin: 8 bytes an extent.
inline constexpr uint64_t kMaxChecksumBytes = 128ull << 20;

std::string manifest_text(const Manifest& manifest);

// Returns the content of checksums.bin: 8 bytes for each extent, little endian, in their order.
std::string checksum_bytes(const Manifest& manifest);

// Returns the text of a dense plan without checksums, with the fingerprint as its only provenance. Two stores
// of the same source in the same layout have equal texts.
std::string plan_text(Manifest manifest);

// Parses and checks (check_manifest). `file` and `checksum_file` name the texts in errors.
Result<Manifest> parse_manifest(std::string_view text, std::string_view file, std::string_view checksums,
                                std::string_view checksum_file);

}  // namespace tierd
