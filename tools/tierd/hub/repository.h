// This is what is asked of a hub of models, and what it says that it has. Both come from strangers: nothing
// of them becomes part of a path or of a URL that has not been looked at here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

struct HubRequest {
  std::string repository;  // "ggml-org/gemma-3-1b-it-GGUF"; empty: none
  std::string quant;       // "Q4_K_M", in whichever case; empty: the usual one
  std::string file;        // of the repository, instead of a quant; empty: none
};

// Reads `text`, owner/repo[:quant]. Error: invalid_argument, which says what was expected.
Result<HubRequest> parse_hub_request(const std::string& text, const std::string& file);

// One file of a repository at one commit.
struct HubFile {
  std::string name;  // its path inside the repository
  uint64_t bytes = 0;
  // The name of its blob: in 64 hexadecimal digits the SHA-256 of its bytes (large files), in 40 the SHA-1
  // that git gives a blob. Empty: the hub did not say, and the file cannot be taken.
  std::string hash;
};

struct HubListing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;
};

// How long an answer that parse_listing takes may be, in bytes: ten thousand files need two million.
inline constexpr uint64_t kLongestListing = 8ull << 20;

// Reads what the hub answers to /api/models/OWNER/REPO/revision/REVISION?blobs=true. Error: corrupt, which
// names `origin` and the key; also where a file's name could lead out of the repository.
Result<HubListing> parse_listing(std::string_view json, const std::string& origin);

// Tells whether `text` is `digits` hexadecimal digits in small letters.
bool is_hash(std::string_view text, size_t digits);

// Tells whether a file's name stays inside the folder that it is put into.
bool is_safe_name(std::string_view name);

}  // namespace tierd
