// Requests to a hub and its listings. Both are untrusted: every name is validated here before it becomes part
// of a path or URL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

struct HubRequest {
  std::string repository;  // "ggml-org/gemma-3-1b-it-GGUF"; empty: none
  std::string quant;       // "Q4_K_M", in either case; empty: the usual one
  std::string file;        // of the repository, in place of a quant; empty: none
};

// Parses `text`, owner/repo[:quant]. Error: invalid_argument, which names the expected form.
Result<HubRequest> parse_hub_request(const std::string& text, const std::string& file);

// One file of a repository at one commit.
struct HubFile {
  std::string name;  // its path inside the repository
  uint64_t bytes = 0;
  // The name of its blob: in 64 hexadecimal digits the SHA-256 of its bytes (large files), in 40 git's SHA-1
  // of a blob. Empty: the hub gave no hash, and the file cannot be downloaded.
  std::string hash;
};

struct HubListing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;
};

// The longest answer that parse_listing accepts, in bytes. Ten thousand files need two million.
inline constexpr uint64_t kLongestListing = 8ull << 20;

// Parses the answer to /api/models/OWNER/REPO/revision/REVISION?blobs=true. Error: corrupt, which names
// `origin` and the key; also for a file name that could leave the repository.
Result<HubListing> parse_listing(std::string_view json, const std::string& origin);

// Returns whether `text` has `digits` hexadecimal digits in lower case.
bool is_hash(std::string_view text, size_t digits);

// Returns whether a file's name stays inside its folder.
bool is_safe_name(std::string_view name);

}  // namespace tierd
