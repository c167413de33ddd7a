#include "core/store/manifest.h"

#include <fmt/format.h>

#include "core/store/file.h"
#include "core/store/manifest_json.h"

namespace tierd {

Result<Manifest> read_manifest(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kManifestFile);
  TIERD_ASSIGN(const std::string text, read_text_file(path, kMaxManifestBytes));
  TIERD_ASSIGN(Manifest manifest, parse_manifest(text, path));
  TIERD_ASSIGN(const File weights, File::open(fmt::format("{}/{}", directory, kDataFile)));
  if (weights.size_bytes() != manifest.data_bytes) {
    return Error{Code::corrupt, weights.path(),
                 fmt::format("{} bytes, the manifest says {}: the store is not whole", weights.size_bytes(),
                             manifest.data_bytes)};
  }
  return manifest;
}

}  // namespace tierd
