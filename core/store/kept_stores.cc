#include "core/store/kept_stores.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "core/base/disk.h"
#include "core/base/file.h"
#include "core/model/layout/encoding.h"
#include "core/store/cache_folder.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".partial";
constexpr std::string_view kRemoved = ".removed";

bool locked(const std::string& path) {
  const OpenFile folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), path);
  return folder.descriptor() >= 0 && ::flock(folder.descriptor(), LOCK_EX | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

void describe(KeptStore& kept, const Manifest& manifest) {
  kept.source = manifest.provenance.source;
  std::error_code unknown;
  kept.source_gone = fs::path(kept.source).is_absolute() && !fs::exists(kept.source, unknown);
  kept.layout = name(manifest.layout);
  std::map<Encoding, uint64_t> bytes;
  for (const StoredSite* site : manifest.stored()) bytes[site->encodings.front()] += site->tensor_bytes();
  std::vector<std::pair<uint64_t, Encoding>> most;
  for (const auto& [encoding, count] : bytes) most.emplace_back(count, encoding);
  std::ranges::sort(most, std::greater());
  for (const auto& [count, encoding] : most) kept.encodings.emplace_back(name(encoding));
}

KeptStore look_at(const fs::path& path) {
  KeptStore kept;
  kept.path = path.string();
  struct stat found {};
  if (::stat(kept.path.c_str(), &found) == 0) kept.used_s = found.st_mtim.tv_sec;
  std::error_code gone;
  for (const auto& file : fs::directory_iterator(path, gone)) {
    if (::lstat(file.path().c_str(), &found) != 0) continue;
    kept.bytes += static_cast<uint64_t>(found.st_blocks) * kStatBlockBytes;
    // A conversion in progress: the time of its last write counts as use.
    if (path.extension() == kUnfinished) kept.used_s = std::max<int64_t>(kept.used_s, found.st_mtim.tv_sec);
  }
  kept.in_use = locked(kept.path);
  if (path.extension() == kUnfinished) {
    kept.state = KeptStore::State::unfinished;
    return kept;
  }
  const auto manifest = read_manifest(kept.path);
  if (manifest.ok()) {
    describe(kept, *manifest);
  } else {
    kept.state = KeptStore::State::unreadable;
    kept.why = manifest.error().line();
  }
  return kept;
}

// Returns whether the entry may be a store: the cache folder has other folders, too (hardware/).
bool looks_like_a_store(const fs::directory_entry& entry) {
  std::error_code unknown;
  if (!entry.is_directory(unknown) || entry.is_symlink(unknown)) return false;
  const fs::path& path = entry.path();
  return path.extension() == kUnfinished || path.extension() == kRemoved || is_store(path.string()) ||
         fs::exists(path / kDataFile, unknown);
}

}  // namespace

Result<std::vector<KeptStore>> kept_stores(const std::string& folder) {
  std::vector<KeptStore> kept;
  std::error_code failed;
  if (!fs::exists(folder, failed)) return kept;
  for (auto entry = fs::directory_iterator(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    if (looks_like_a_store(*entry)) kept.push_back(look_at(entry->path()));
  }
  if (failed) return Error{Code::io_error, folder, failed.message()};
  std::ranges::sort(kept, [](const KeptStore& a, const KeptStore& b) {
    return std::pair(a.used_s, a.path) < std::pair(b.used_s, b.path);
  });
  return kept;
}

Status remove_store(const std::string& path) {
  std::string going = path;
  std::error_code failed;
  if (!path.ends_with(kRemoved)) {
    going += kRemoved;
    fs::rename(path, going, failed);
  }
  if (!failed) fs::remove_all(going, failed);
  if (failed) return Error{Code::io_error, path, "cannot be removed: " + failed.message()};
  return {};
}

void mark_used(const std::string& path) {
  const auto folder = cache_folder();
  std::error_code unknown;
  if (!folder.ok() || !fs::equivalent(fs::path(path).parent_path(), *folder, unknown)) return;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

}  // namespace tierd
