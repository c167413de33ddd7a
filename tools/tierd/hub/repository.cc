#include "tools/tierd/hub/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr size_t kLongestPart = 96;        // of a repository's name
constexpr size_t kLongestComponent = 255;  // of a path, the limit of file systems
constexpr size_t kLongestName = 1024;
constexpr uint64_t kMostValues = 500'000;  // of a listing; ten thousand files have a tenth of that
constexpr uint64_t kLargestFile = uint64_t{1} << 53;

// The hub's rule for names of owners and repositories. The cache separates the two by "--".
bool is_part(std::string_view text) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= kLongestPart && std::ranges::all_of(text, allowed) &&
         text.find("--") == std::string_view::npos && text.find("..") == std::string_view::npos &&
         std::string_view("-.").find(text.front()) == std::string_view::npos &&
         std::string_view("-.").find(text.back()) == std::string_view::npos;
}

bool is_quant(std::string_view text) {
  return !text.empty() && text.size() <= kLongestPart && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

Result<HubFile> parse_file(const JsonFields& sibling) {
  HubFile file;
  TIERD_ASSIGN(file.name, sibling.text("rfilename"));
  if (!is_safe_name(file.name))
    return sibling.error("rfilename", fmt::format("'{}' is not a path inside the repository", file.name));
  const bool large = sibling.has("lfs");
  TIERD_ASSIGN(const JsonFields described, large ? sibling.object("lfs") : sibling);
  const char* const key = large ? "sha256" : "blobId";
  TIERD_ASSIGN(file.hash, described.text(key, ""));
  if (described.has(key) && !is_hash(file.hash, large ? 64 : 40))
    return described.error(key, "is not a hash in lower-case hexadecimal digits");
  if (!described.has("size")) {
    file.hash.clear();
    return file;
  }
  TIERD_ASSIGN(file.bytes, described.whole("size", kLargestFile));
  return file;
}

}  // namespace

bool is_hash(std::string_view text, size_t digits) {
  return text.size() == digits && std::ranges::all_of(text, [](unsigned char c) {
           return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
         });
}

bool is_safe_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return false;
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; }))
    return false;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.size() > kLongestComponent) return false;
    at = end + 1;
  }
  return true;
}

Result<HubRequest> parse_hub_request(const std::string& text, const std::string& file) {
  const size_t colon = text.find(':');
  const std::string repository = text.substr(0, colon);
  const size_t slash = repository.find('/');
  const bool named = slash != std::string::npos && is_part(std::string_view(repository).substr(0, slash)) &&
                     is_part(std::string_view(repository).substr(slash + 1));
  const std::string quant = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (!named || (colon != std::string::npos && !is_quant(quant))) {
    return Error{
        Code::invalid_argument, "--hf-repo",
        fmt::format("'{}' is not OWNER/REPO[:QUANT]; expected one such as ggml-org/gemma-3-1b-it-GGUF:Q4_K_M",
                    text)};
  }
  if (!file.empty() && !is_safe_name(file)) {
    return Error{Code::invalid_argument, "--hf-file",
                 fmt::format("'{}' is not the path of a file inside the repository", file)};
  }
  return HubRequest{repository, quant, file};
}

Result<HubListing> parse_listing(std::string_view text, const std::string& origin) {
  TIERD_ASSIGN(const json root, parse_json(text, origin, kMostValues));
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(root, origin));
  HubListing listing;
  TIERD_ASSIGN(listing.commit, fields.text("sha"));
  if (!is_hash(listing.commit, 40)) return fields.error("sha", "is not a commit of 40 hexadecimal digits");
  TIERD_TRY(fields.read_each("siblings", [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const JsonFields sibling, fields.element("siblings", index, value));
    TIERD_ASSIGN(listing.files.emplace_back(), parse_file(sibling));
    return {};
  }));
  return listing;
}

}  // namespace tierd
