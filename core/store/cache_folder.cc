#include "core/store/cache_folder.h"

#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/base/checksum.h"
#include "core/base/log.h"
#include "core/store/manifest_json.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kWaitForOtherRun(200);

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

// A store of the same path made when its files were others; empty if there is none.
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

}  // namespace

Result<std::string> cache_folder() {
  if (const char* own = variable("TIERD_CACHE")) return std::string(own);
  if (const char* xdg = variable("XDG_CACHE_HOME")) return fmt::format("{}/tierd", xdg);
  if (const char* home = variable("HOME")) return fmt::format("{}/.cache/tierd", home);
  return Error{Code::not_found, "cache folder", "set TIERD_CACHE to the folder for converted models"};
}

Result<std::string> store_path(const TensorSource& source, const WriteOptions& options) {
  TIERD_ASSIGN(const std::string folder, cache_folder());
  TIERD_ASSIGN(const Manifest plan, plan_store(source, options));
  return fmt::format("{}/{}-{}", folder, folder_name(source), checksum_text(checksum(plan_text(plan))));
}

Result<std::string> store_for(const std::string& path, const SourceOptions& source_options,
                              const WriteOptions& options) {
  if (is_store(path)) return path;
  TIERD_ASSIGN(const std::unique_ptr<TensorSource> source, open_source(path, source_options));
  return store_for(*source, options);
}

Result<std::string> store_for(const TensorSource& source, const WriteOptions& options) {
  TIERD_ASSIGN(const std::string store, store_path(source, options));
  const fs::path folder = fs::path(store).parent_path();
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    return Error{Code::io_error, folder.string(), "the cache folder cannot be made: " + failed.message()};
  }
  if (!options.quiet && !is_store(store)) {
    const std::string old = outdated_store(folder, source);
    if (!old.empty()) {
      say(fmt::format("{} has changed, converting it anew; {} is of no use any more", source.path(), old));
    }
  }
  for (bool said = options.quiet;;) {
    const Status written = write_store(source, store, options);
    if (written.ok()) return store;
    if (written.code() != Code::busy) return written.error();
    if (!said) say(fmt::format("waiting for another run that converts {}", source.path()));
    said = true;
    std::this_thread::sleep_for(kWaitForOtherRun);
  }
}

}  // namespace tierd
