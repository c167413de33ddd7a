#include "tools/tierd/hub/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <span>
#include <system_error>
#include <thread>

#include "core/base/file.h"
#include "core/base/log.h"
#include "tools/tierd/hub/environment.h"
#include "tools/tierd/hub/repository.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kBetweenTries(200);
constexpr uint64_t kLongestRef = 256;  // bytes of refs/main

Status make_folders(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (!failed) return {};
  return Error{failed == std::errc::no_space_on_device ? Code::no_space : Code::io_error, path.string(),
               "the folder cannot be made: " + failed.message()};
}

// Returns a name beside `path` that no other process uses.
std::string beside(const std::string& path) {
  return fmt::format("{}.{}.tmp", path, ::getpid());
}

}  // namespace

Result<std::string> hub_cache_folder() {
  for (const char* const name : {"LLAMA_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto folder = path_variable(name)) return *folder;
  }
  TIERD_ASSIGN(const std::string home, hub_home());
  return home + "/hub";
}

HubCache::HubCache(std::string folder, const std::string& repository)
    : folder_(std::move(folder)), name_("models--" + repository) {
  name_.replace(name_.find('/'), 1, "--");
  root_ = folder_ + "/" + name_;
}

std::string HubCache::blob(const std::string& hash) const {
  return root_ + "/blobs/" + hash;
}
std::string HubCache::incomplete(const std::string& hash) const {
  return blob(hash) + ".incomplete";
}
std::string HubCache::snapshot(const std::string& commit) const {
  return root_ + "/snapshots/" + commit;
}
std::string HubCache::file(const std::string& commit, const std::string& name) const {
  return snapshot(commit) + "/" + name;
}

bool HubCache::has_blob(const std::string& hash) const {
  std::error_code none;
  return fs::is_regular_file(blob(hash), none);
}

uint64_t HubCache::incomplete_bytes(const std::string& hash) const {
  std::error_code none;
  const uint64_t bytes = fs::file_size(incomplete(hash), none);
  return none ? 0 : bytes;
}

std::optional<std::string> HubCache::main() const {
  auto text = read_whole_file(root_ + "/refs/main", kLongestRef);
  if (!text.ok()) return std::nullopt;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (!is_hash(*text, 40)) return std::nullopt;
  return *text;
}

std::vector<std::string> HubCache::commits() const {
  struct Found {
    bool main = false;
    fs::file_time_type made;
    std::string commit;
  };
  std::vector<Found> found;
  const std::optional<std::string> of_main = main();
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root_ + "/snapshots", none)) {
    const std::string commit = entry.path().filename().string();
    if (is_hash(commit, 40)) found.push_back({commit == of_main, entry.last_write_time(none), commit});
  }
  std::ranges::sort(found, [](const Found& a, const Found& b) {
    return a.main != b.main ? a.main : a.made != b.made ? a.made > b.made : a.commit < b.commit;
  });
  std::vector<std::string> commits;
  commits.reserve(found.size());
  for (Found& one : found) commits.push_back(std::move(one.commit));
  return commits;
}

std::vector<std::string> HubCache::files(const std::string& commit) const {
  std::vector<std::string> names;
  const fs::path root = snapshot(commit);
  std::error_code none;
  for (fs::recursive_directory_iterator at(root, none), end; !none && at != end; at.increment(none)) {
    std::error_code dangling;
    if (at->is_regular_file(dangling)) names.push_back(at->path().lexically_relative(root).generic_string());
  }
  return names;
}

Status HubCache::prepare() const {
  TIERD_TRY(make_folders(root_ + "/blobs"));
  return make_folders(folder_ + "/.locks/" + name_);
}

Result<OpenFile> HubCache::lock(const std::string& hash, bool quiet) const {
  const std::string path = fmt::format("{}/.locks/{}/{}.lock", folder_, name_, hash);
  Disk disk;
  for (bool told = quiet;;) {
    TIERD_ASSIGN(OpenFile file, disk.open(path, false));
    // Group-writable, for users who share a cache. The call may fail on another user's file.
    (void)::fchmod(file.descriptor(), 0664);
    while (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      // On a file system without locks, the checksum detects two simultaneous downloads.
      if (has_no_locks(errno)) return file;
      if (errno != EWOULDBLOCK) return disk_error(path, "locking it");
      if (!told) say(fmt::format("{}: another process downloads this file; waiting for it", path));
      told = true;
      std::this_thread::sleep_for(kBetweenTries);
    }
    // Locking a file that was unlinked protects nothing, so check that the path still names it.
    struct stat ours {};
    struct stat there {};
    if (::fstat(file.descriptor(), &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
        ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
      return file;
  }
}

Status HubCache::link(const std::string& commit, const std::string& name, const std::string& hash) const {
  const std::string path = file(commit, name);
  std::error_code none;
  if (fs::equivalent(path, blob(hash), none) && !none) return {};
  const fs::path folder = fs::path(path).parent_path();
  TIERD_TRY(make_folders(folder));
  const std::string target = fs::path(blob(hash)).lexically_relative(folder).generic_string();
  // The link is created beside and renamed, so that other processes always see the old one or the new one.
  const std::string made = beside(path);
  Disk disk;
  TIERD_TRY(disk.remove(made));
  if (::symlink(target.c_str(), made.c_str()) != 0) return disk_error(made, "linking to " + target);
  TIERD_TRY(disk.rename(made, path));
  TIERD_ASSIGN(const OpenFile directory, open_directory(folder.string()));
  return disk.sync(directory);
}

Status HubCache::set_main(const std::string& commit) const {
  if (main() == commit) return {};
  TIERD_TRY(make_folders(root_ + "/refs"));
  const std::string path = root_ + "/refs/main", made = beside(path);
  Disk disk;
  TIERD_ASSIGN(const OpenFile file, disk.open(made, true));
  TIERD_TRY(disk.write(file, 0, std::as_bytes(std::span(commit))));
  TIERD_TRY(disk.sync(file));
  return disk.rename(made, path);
}

}  // namespace tierd
