// The text of manifest.json and the checksums beside it. The first line of the text holds the checksum of all
// that follows, so that the file, still valid JSON, carries the manifest and the proof that no bit of it has
// changed; it holds the checksum of the other file, too.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/store/manifest.h"

namespace tierd {

// A hostile file cannot make the parser take more than some times this much memory.
inline constexpr uint64_t kMaxManifestBytes = 128ull << 20;

// The most that the file of the checksums may hold: as many extents as fit 128 MiB.
inline constexpr uint64_t kMaxChecksumBytes = 128ull << 20;

std::string manifest_text(const Manifest& manifest);

// What the file of the checksums holds: 8 bytes for each extent, little endian, in their order.
std::string checksum_bytes(const Manifest& manifest);

// The text of a plan: without checksums, and with the fingerprint as all of its provenance. Equal for two
// stores of the same source in the same layout.
std::string plan_text(Manifest manifest);

// Parses and checks (check_manifest). `file` and `checksum_file` name the texts in errors.
Result<Manifest> parse_manifest(std::string_view text, std::string_view file, std::string_view checksums,
                                std::string_view checksum_file);

}  // namespace tierd
