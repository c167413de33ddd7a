#include "core/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/base/file.h"
#include "core/base/progress.h"
#include "core/store/site_compression.h"

namespace tierd {

Result<Store> Store::open(const std::string& directory) {
  // Taken before the manifest is read, so that a manifest written later is noticed.
  const Identity manifest_file = identity_of(fmt::format("{}/{}", directory, kManifestFile));
  TIERD_ASSIGN(Manifest manifest, read_manifest(directory));
  Store store(directory, std::move(manifest), true);
  store.manifest_file_ = manifest_file;
  store.data_file_ = identity_of(store.data_path());
  OpenFile folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory);
  if (folder.descriptor() >= 0 && ::flock(folder.descriptor(), LOCK_SH | LOCK_NB) == 0)
    store.held_ = std::make_shared<const OpenFile>(std::move(folder));
  return store;
}

Store Store::planned(const std::string& directory, Manifest plan) {
  return {directory, std::move(plan), false};
}

Store::Identity Store::identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, static_cast<uint64_t>(found.st_size), found.st_mtim.tv_sec,
          found.st_mtim.tv_nsec};
}

Status Store::unchanged() const {
  for (const auto& [path, opened] :
       {std::pair(fmt::format("{}/{}", directory_, kManifestFile), manifest_file_),
        std::pair(data_path(), data_file_)}) {
    const Identity now = identity_of(path);
    if (now == opened) continue;
    const char* const what = now == Identity()           ? "was removed"
                             : now.inode == opened.inode ? "was written to"
                                                         : "was replaced";
    return Error{Code::corrupt, path, fmt::format("{} since it was opened", what)};
  }
  return {};
}

std::string Store::data_path() const {
  return fmt::format("{}/{}", directory_, kDataFile);
}

std::string Store::describe(uint32_t extent) const {
  std::string content = "unknown";
  for (const StoredSite* site : manifest_.stored()) {
    const auto held = site->held_by(extent);
    if (!held) continue;
    const auto [neuron, piece] = *held;
    content = fmt::format("{} neuron {}", site->name, neuron);
    if (site->edition_of != kNoSite) content += fmt::format(" in {}", name(site->encodings.front()));
    if (site->pieces > 1) content += fmt::format(", {}", site->parts[piece].tensor);
    break;
  }
  for (const ResidentTensor& resident : manifest_.resident) {
    if (resident.extent == extent) content = resident.name;
  }
  return fmt::format("extent {} ({}, offset {})", extent, content, manifest_.extents[extent].offset);
}

Status Store::verify(uint32_t extent, std::span<const std::byte> bytes) const {
  const uint64_t found = checksum(bytes);
  const uint64_t expected = manifest_.extents[extent].checksum;
  if (found == expected) return {};
  return Error{Code::corrupt, data_path(),
               fmt::format("{} has checksum {}, expected {}: the store is damaged, convert the model again",
                           describe(extent), checksum_text(found), checksum_text(expected))};
}

Status Store::verify_compressed(const StoredSite& site, uint32_t extent, std::span<const std::byte> bytes,
                                const NeuronCodec* codec) const {
  const uint32_t neuron = site.held_by(extent)->neuron;
  std::vector<std::byte> dense(site.dense_bytes(neuron));
  const Status expanded =
      SiteCompression::of(site.compression, codec, site)->expand(bytes.first(site.compressed[neuron]), dense);
  if (expanded.ok()) return {};
  return Error{expanded.code(), data_path(),
               fmt::format("{}: its {}", describe(extent), expanded.error().line())};
}

Status Store::verify_all(bool quiet, const NeuronCodec* codec) const {
  TIERD_CHECK((manifest_.compression == Compression::codec) == (codec != nullptr));
  TIERD_ASSIGN(const File file, File::open(data_path()));
  Progress progress("verifying", manifest_.data_bytes, quiet);
  std::vector<const StoredSite*> compressed;
  for (const StoredSite* site : manifest_.stored()) {
    if (site->compression != Compression::none) compressed.push_back(site);
  }
  std::vector<std::byte> buffer;
  for (uint32_t i = 0; i < manifest_.extents.size(); ++i) {
    const Extent& extent = manifest_.extents[i];
    buffer.resize(std::max<size_t>(buffer.size(), extent.bytes));
    const std::span bytes = std::span(buffer).first(extent.bytes);
    TIERD_TRY(file.read_exact(extent.offset, bytes));
    TIERD_TRY(verify(i, bytes));
    for (const StoredSite* const site : compressed) {
      if (site->held_by(i)) TIERD_TRY(verify_compressed(*site, i, bytes, codec));
    }
    progress.advance(extent.bytes);
  }
  progress.finish();
  return {};
}

}  // namespace tierd
