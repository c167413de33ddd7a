// The text of manifest.json. Its first line holds the checksum of all that follows, so that one file, still
// valid JSON, carries the manifest and the proof that no bit of it has changed.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/store/manifest.h"

namespace tierd {

// A hostile file cannot make the parser take more than some times this much memory.
inline constexpr uint64_t kMaxManifestBytes = 128ull << 20;

std::string manifest_text(const Manifest& manifest);

// The text of a plan: without checksums, and with the fingerprint as all of its provenance. Equal for two
// stores of the same source in the same layout.
std::string plan_text(Manifest manifest);

// Parses and checks (check_manifest). `file` names the text in errors.
Result<Manifest> parse_manifest(std::string_view text, std::string_view file);

}  // namespace tierd
