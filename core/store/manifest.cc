#include "core/store/manifest.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/store/manifest_json.h"

namespace tierd {
namespace {

// Returns pointers to all sites and editions of a manifest that have extents of their own.
template <class Pointer, class In>
std::vector<Pointer> stored_in(In& manifest) {
  std::vector<Pointer> all;
  for (auto& site : manifest.sites) {
    if (site.alias_of == kNoSite) all.push_back(&site);
  }
  for (auto& edition : manifest.editions) all.push_back(&edition);
  return all;
}

}  // namespace

std::vector<const StoredSite*> Manifest::stored() const {
  return stored_in<const StoredSite*>(*this);
}

std::vector<StoredSite*> Manifest::stored() {
  return stored_in<StoredSite*>(*this);
}

Result<Manifest> read_manifest(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kManifestFile);
  TIERD_ASSIGN(const std::string text, read_whole_file(path, kMaxManifestBytes));
  const std::string checksum_path = fmt::format("{}/{}", directory, kChecksumFile);
  const auto checksums = read_whole_file(checksum_path, kMaxChecksumBytes);
  auto parsed = parse_manifest(text, path, checksums.ok() ? *checksums : std::string(), checksum_path);
  // A store of an older format has no file of checksums.
  if (!checksums.ok() && parsed.code() != Code::unsupported) return checksums.error();
  TIERD_ASSIGN(Manifest manifest, std::move(parsed));
  TIERD_ASSIGN(const File weights, File::open(fmt::format("{}/{}", directory, kDataFile)));
  if (weights.size_bytes() != manifest.data_bytes) {
    return Error{
        Code::corrupt, weights.path(),
        fmt::format("{} bytes, but {} by the manifest: the store is incomplete; convert the model again",
                    weights.size_bytes(), manifest.data_bytes)};
  }
  return manifest;
}

}  // namespace tierd
