#include "core/store/cache_folder.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/base/checksum.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/trust.h"
#include "core/base/units.h"
#include "core/store/manifest_json.h"
#include "core/store/store_writer.h"
#include "core/system/host_facts.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kWaitForOtherRun(200);
constexpr uint32_t kQuietWaits = 50;

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// The model's name as part of a path.
std::string folder_name(const TensorSource& source) {
  std::string name = fs::path(source.path()).lexically_normal().stem().string();
  if (name.empty() || name == ".") name = source.config().name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-' && c != '_') c = '_';
  }
  constexpr size_t kLongest = 100;
  return name.substr(0, kLongest);
}

// Returns the path of a store made from the same model path with other files; empty if there is none.
std::string outdated_store(const fs::path& folder, const TensorSource& source) {
  const std::string prefix = folder_name(source) + "-";
  std::error_code ignored;  // no folder: no store
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const auto manifest = read_manifest(entry.path().string());
    if (manifest.ok() && manifest->provenance.source == source.path() &&
        manifest->provenance.fingerprint != source.fingerprint()) {
      return entry.path().string();
    }
  }
  return {};
}

Result<std::string> path_of(const TensorSource& source, const std::string& plan_text) {
  TIERD_ASSIGN(const std::string folder, cache_folder());
  return fmt::format("{}/{}-{}", folder, folder_name(source), checksum_text(checksum(plan_text)));
}

}  // namespace

Result<std::string> cache_folder() {
  if (const char* own = variable("TIERD_CACHE")) return std::string(own);
  if (const char* xdg = variable("XDG_CACHE_HOME")) return fmt::format("{}/tierd", xdg);
  if (const char* home = variable("HOME")) return fmt::format("{}/.cache/tierd", home);
  return Error{Code::not_found, "cache folder", "set TIERD_CACHE to the folder for converted models"};
}

Result<std::string> machine_file() {
  TIERD_ASSIGN(const std::string folder, cache_folder());
  return fmt::format("{}/hardware/{}.toml", folder, read_host_facts().name);
}

Result<std::string> store_path(const TensorSource& source, const WriteOptions& options) {
  TIERD_ASSIGN(const Manifest plan, plan_store(source, options));
  return path_of(source, plan_text(plan));
}

Result<FoundStore> find_store(const std::string& path, const SourceOptions& source_options,
                              const WriteOptions& options) {
  if (is_store(path)) {
    TIERD_ASSIGN(Store store, Store::open(path));
    if (source_options.order.empty() || store.manifest().config.channel_order)
      return FoundStore{std::move(store), nullptr};
    return Error{
        Code::invalid_argument, "model.order",
        fmt::format("is about channels, and those of the store {} lie by their numbers: convert its model "
                    "with --order",
                    path)};
  }
  TIERD_ASSIGN(std::unique_ptr<TensorSource> source, open_source(path, source_options));
  TIERD_ASSIGN(Manifest plan, plan_store(*source, options));
  const std::string text = plan_text(plan);
  TIERD_ASSIGN(const std::string directory, path_of(*source, text));
  const std::string folder = fs::path(directory).parent_path().string();
  if (std::error_code none; fs::exists(folder, none)) TIERD_TRY(check_folder(folder));
  TIERD_ASSIGN(const bool whole, holds_store(directory, plan, text));
  if (whole) {
    TIERD_ASSIGN(Store store, Store::open(directory));
    return FoundStore{std::move(store), nullptr};
  }
  FoundStore found{Store::planned(directory, std::move(plan)), std::move(source)};
  if (!found.source->has_weights()) return found;  // it will never be made
  TIERD_ASSIGN(const DiskRoom room, disk_room(found.store));
  if (room.needed_bytes <= room.left_bytes) return found;
  return Error{Code::no_space, directory,
               fmt::format("the store of this model takes {}, and its disk has {} left; TIERD_CACHE names a "
                           "folder on another disk",
                           format_bytes(static_cast<double>(room.needed_bytes)),
                           format_bytes(static_cast<double>(room.left_bytes)))};
}

Result<DiskRoom> disk_room(const Store& planned) {
  const Manifest& plan = planned.manifest();
  DiskRoom room;
  room.needed_bytes = plan.data_bytes + plan.extents.size() * sizeof(plan.extents.front().checksum);
  struct stat begun {};
  if (::stat(fmt::format("{}.partial/{}", planned.directory(), kDataFile).c_str(), &begun) == 0)
    room.needed_bytes -=
        std::min(room.needed_bytes, static_cast<uint64_t>(begun.st_blocks) * kStatBlockBytes);
  // The folder is made with the store.
  const std::string there = nearest_existing(planned.directory());
  struct statvfs disk {};
  if (::statvfs(there.c_str(), &disk) != 0)
    return Error{Code::io_error, there, std::generic_category().message(errno)};
  room.left_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
  return room;
}

Result<std::string> store_for(const TensorSource& source, const WriteOptions& options) {
  TIERD_ASSIGN(const std::string store, store_path(source, options));
  const fs::path folder = fs::path(store).parent_path();
  std::error_code failed;
  if (fs::create_directories(folder, failed)) fs::permissions(folder, fs::perms::owner_all, failed);
  if (failed) {
    return Error{Code::io_error, folder.string(), "the cache folder cannot be made: " + failed.message()};
  }
  TIERD_TRY(check_folder(folder.string()));
  if (!options.quiet && !is_store(store)) {
    const std::string old = outdated_store(folder, source);
    if (!old.empty()) {
      say(fmt::format("{} has changed, converting it anew; {} is of no use any more", source.path(), old));
    }
  }
  uint32_t waited = 0;
  for (bool said = false;;) {
    const Status written = write_store(source, store, options);
    if (written.ok()) return store;
    if (written.code() != Code::busy) return written.error();
    // A quiet run prints this only if the wait is long.
    if (!said && (!options.quiet || waited++ >= kQuietWaits)) {
      say(fmt::format("waiting for another run that converts {}", source.path()));
      said = true;
    }
    std::this_thread::sleep_for(kWaitForOtherRun);
  }
}

}  // namespace tierd
