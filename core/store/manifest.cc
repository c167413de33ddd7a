#include "core/store/manifest.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/store/manifest_json.h"

namespace tierd {
namespace {

Result<uint64_t> file_size(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::not_found : Code::io_error;
    return Error{code, path, std::strerror(errno)};
  }
  if (!S_ISREG(status.st_mode)) return Error{Code::corrupt, path, "is not a file"};
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

Result<Manifest> read_manifest(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kManifestFile);
  TIERD_ASSIGN(const uint64_t bytes, file_size(path));
  if (bytes > kMaxManifestBytes) {
    return Error{Code::corrupt, path, fmt::format("{} bytes, at most {} expected", bytes, kMaxManifestBytes)};
  }
  std::string text(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(bytes))) {
    return Error{Code::io_error, path, fmt::format("cannot be read: {}", std::strerror(errno))};
  }
  TIERD_ASSIGN(Manifest manifest, parse_manifest(text, path));
  const std::string weights = fmt::format("{}/{}", directory, kDataFile);
  TIERD_ASSIGN(const uint64_t found, file_size(weights));
  if (found != manifest.data_bytes) {
    return Error{
        Code::corrupt, weights,
        fmt::format("{} bytes, the manifest says {}: the store is not whole", found, manifest.data_bytes)};
  }
  return manifest;
}

}  // namespace tierd
