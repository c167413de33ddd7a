// tier-store: lists, verifies and removes the stores into which models were converted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/units.h"
#include "core/run/store_codec.h"
#include "core/store/cache_folder.h"
#include "core/store/kept_stores.h"
#include "core/store/store.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr const char* kAbout = "Lists, verifies and prunes the stores that models were converted into.";
constexpr const char* kExamples = R"(
tierd converts a model once for each layout that it is run with, into the cache
folder ($TIERD_CACHE, else ~/.cache/tierd). The next run that needs a removed
store converts its model again.

Examples:
  tier-store list                     lists stores, the least recently used first
  tier-store verify                   reads every store and checks its checksums
  tier-store verify model-8d0f…       reads one store, by its name or path
  tier-store prune --keep 50GB        removes the least recently used, down to 50 GB
  tier-store prune --keep 0 --dry-run lists the stores that would be removed

Exit status: 0; 1 if a store is damaged or a disk failed; 2 for unusable
arguments, with one line on standard error that says why.)";

struct Options {
  std::vector<std::string> stores;
  std::vector<std::string> plugin_folders;
  std::string keep;
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

const char* name_of(KeptStore::State state) {
  switch (state) {
    case KeptStore::State::whole:
      return "whole";
    case KeptStore::State::unfinished:
      return "unfinished";
    case KeptStore::State::unreadable:
      break;
  }
  return "unreadable";
}

uint64_t bytes_of(const std::vector<KeptStore>& stores) {
  uint64_t bytes = 0;
  for (const KeptStore& store : stores) bytes += store.bytes;
  return bytes;
}

int print(const std::string& text) {
  const Status written = write_output(text);
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

std::string since(int64_t used_s) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return format_duration(static_cast<double>(std::max<int64_t>(0, now - used_s))) + " ago";
}

std::string note_on(const KeptStore& store) {
  if (store.state == KeptStore::State::unreadable) return store.why;
  std::string note = store.state == KeptStore::State::unfinished
                         ? std::string(store.in_use ? "is being made" : "incomplete; the next run resumes it")
                         : store.source;
  if (store.source_gone) note += " (which is gone)";
  if (store.in_use && store.state == KeptStore::State::whole) note += " (in use)";
  return note;
}

json listed(const std::string& folder, const std::vector<KeptStore>& stores) {
  json list = json::array();
  for (const KeptStore& store : stores) {
    list.push_back({{"path", store.path},
                    {"state", name_of(store.state)},
                    {"bytes", store.bytes},
                    {"used", store.used_s},
                    {"in_use", store.in_use},
                    {"source", store.source},
                    {"source_gone", store.source_gone},
                    {"layout", store.layout},
                    {"encodings", store.encodings},
                    {"why", store.why}});
  }
  return {{"folder", folder}, {"bytes", bytes_of(stores)}, {"stores", std::move(list)}};
}

int list(const std::string& folder, const std::vector<KeptStore>& stores, const Options& options) {
  if (options.json) return print(listed(folder, stores).dump(2) + "\n");
  size_t longest = 5;
  for (const KeptStore& store : stores) longest = std::max(longest, file_name(store.path).size());
  std::string text = fmt::format("{:>8}  {:>20}  {:<14} {:<12} {:<{}}  model\n", "on disk", "last used",
                                 "layout", "encodings", "store", longest);
  for (const KeptStore& store : stores) {
    text += fmt::format("{:>8}  {:>20}  {:<14} {:<12} {:<{}}  {}\n",
                        format_bytes(static_cast<double>(store.bytes)), since(store.used_s), store.layout,
                        fmt::format("{}", fmt::join(store.encodings, ",")), file_name(store.path), longest,
                        note_on(store));
  }
  if (stores.empty()) text.clear();
  text += fmt::format("{} stores in {}, {}\n", stores.size(), folder,
                      format_bytes(static_cast<double>(bytes_of(stores))));
  return print(text);
}

Status verify(const std::string& path, const PluginPath& plugins, bool quiet) {
  TIERD_ASSIGN(const Store store, Store::open(path));
  TIERD_ASSIGN(const auto codec, codec_of(store, plugins));
  return store.verify_all(quiet, codec.get());
}

// Verifies all stores, even after a failure.
int verify(const std::string& folder, const std::vector<KeptStore>& stores, const Options& options) {
  std::vector<std::string> paths;
  for (const std::string& name : options.stores) {
    const bool is_path = name.find('/') != std::string::npos;
    paths.push_back(is_path ? name : fmt::format("{}/{}", folder, name));
  }
  if (options.stores.empty()) {
    for (const KeptStore& store : stores)
      if (store.state != KeptStore::State::unfinished) paths.push_back(store.path);
  }
  int status = 0;
  const PluginPath plugins = PluginPath::usual(fmt::format("{}", fmt::join(options.plugin_folders, ":")));
  for (const std::string& path : paths) {
    const Status sound = verify(path, plugins, options.quiet);
    if (!sound.ok()) {
      say(sound.error().line());
      status = kFailed;
    } else if (const int failed = print(path + ": sound\n"); failed != 0) {
      return failed;
    }
  }
  return status;
}

// Removes the least recently used stores first, until the rest fits.
int prune(const std::vector<KeptStore>& stores, const Options& options) {
  const auto keep = parse_bytes(options.keep, "--keep");
  if (!keep.ok()) return fail(keep.error(), kBadInput);
  uint64_t left = bytes_of(stores);
  for (const KeptStore& store : stores) {
    if (left <= *keep) break;
    if (store.in_use || store.source_gone) {
      say(fmt::format("{}: is kept; {}", store.path,
                      store.in_use
                          ? "it is in use"
                          : fmt::format("its model {} no longer exists, so it could not be converted again",
                                        store.source)));
      continue;
    }
    if (!options.dry_run) {
      const Status removed = remove_store(store.path);
      if (!removed.ok()) return fail(removed.error(), kFailed);
    }
    left -= store.bytes;
    const int failed =
        print(fmt::format("{} {}: {}, last used {}\n", options.dry_run ? "would remove" : "removed",
                          store.path, format_bytes(static_cast<double>(store.bytes)), since(store.used_s)));
    if (failed != 0) return failed;
  }
  return print(fmt::format("{} {}\n", format_bytes(static_cast<double>(left)),
                           options.dry_run ? "would be left" : "are left"));
}

int run(int argc, char** argv) {
  Options options;
  enum class Command : uint8_t { list, verify, prune } command{};
  CommandLine line("tier-store", kAbout);
  line.footer([] { return kExamples; });
  CommandLine& listing = line.command("list", "list the stores, the least recently used first",
                                      [&] { command = Command::list; });
  listing.flag("--json", options.json, "Print one JSON object");
  CommandLine& verifying =
      line.command("verify", "read stores and check every checksum", [&] { command = Command::verify; });
  verifying.option("STORE", options.stores, "Names as printed by `list`, or paths; default: all")
      .named("STORE");
  verifying
      .option("--plugin-path", options.plugin_folders,
              "A folder with codecs, for stores that one has compressed; may be repeated")
      .named("DIR");
  verifying.flag("-q,--quiet", options.quiet, "No progress");
  CommandLine& pruning =
      line.command("prune", "remove the least recently used stores", [&] { command = Command::prune; });
  pruning.option("--keep", options.keep, "Total size of the stores that are kept, such as 50GB")
      .required()
      .named("SIZE");
  pruning.flag("--dry-run", options.dry_run, "Print the stores that would be removed, and remove nothing");
  if (const auto status = line.parse(argc, argv)) return *status;
  const auto folder = cache_folder();
  if (!folder.ok()) return fail(folder.error(), kBadInput);
  const auto stores = kept_stores(*folder);
  if (!stores.ok()) return fail(stores.error(), kFailed);
  if (command == Command::verify) return verify(*folder, *stores, options);
  return command == Command::prune ? prune(*stores, options) : list(*folder, *stores, options);
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
