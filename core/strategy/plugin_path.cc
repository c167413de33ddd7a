#include "core/strategy/plugin_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "core/base/nearest.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kKinds = {"predictor", "quantizer", "cache",
                                                    "balancer",  "codec",     "agent"};
constexpr std::string_view kSuffix = ".so";

// Letters, digits, '-' and '_': no name can lead out of a folder.
bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

PluginPath::PluginPath(std::vector<std::string> folders) {
  std::vector<fs::path> seen;
  for (std::string& folder : folders) {
    std::error_code ignored;
    const fs::path canonical = fs::weakly_canonical(folder, ignored);
    if (folder.empty() || std::find(seen.begin(), seen.end(), canonical) != seen.end()) continue;
    seen.push_back(canonical);
    folders_.push_back(std::move(folder));
  }
}

std::vector<std::string> PluginPath::split(std::string_view list) {
  std::vector<std::string> folders;
  while (!list.empty()) {
    const size_t end = std::min(list.find(':'), list.size());
    if (end != 0) folders.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return folders;
}

std::string PluginPath::installed() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  // Without /proc the auxiliary vector has the name by which the kernel started the program.
  const auto* const name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (error && name != nullptr) program = fs::canonical(name, error);
  return error ? "" : (program.parent_path().parent_path() / "lib" / "tierd").string();
}

PluginPath PluginPath::usual(std::string_view first) {
  std::vector<std::string> folders = split(first);
  if (const char* environment = std::getenv("TIERD_PLUGIN_PATH")) {
    for (std::string& folder : split(environment)) folders.push_back(std::move(folder));
  }
  folders.push_back(installed());
  return PluginPath(std::move(folders));
}

Result<std::string> PluginPath::find(std::string_view kind, std::string_view name,
                                     std::string_view named_at) const {
  const std::string key = named_at.empty() ? fmt::format("{}.name", kind) : std::string(named_at);
  if (!is_name(name)) {
    return Error{Code::invalid_argument, key,
                 fmt::format("'{}' is not a plugin's name; expected letters, digits, '-' and '_'", name)};
  }
  std::vector<std::string> files;
  for (const std::string& folder : folders_) {
    const fs::path file = fs::path(folder) / fmt::format("{}-{}{}", kind, name, kSuffix);
    std::error_code ignored;
    if (fs::exists(file, ignored)) files.push_back(file.string());
  }
  if (files.size() == 1) return files.front();
  if (files.size() > 1) {
    return Error{
        Code::invalid_argument, key,
        fmt::format("found several files: {}; keep one of them on the plugin path", fmt::join(files, ", "))};
  }
  const std::vector<Found> all = list();
  std::vector<std::string_view> known;
  for (const Found& found : all) {
    if (found.kind == kind) known.push_back(found.name);
  }
  const std::string_view meant = nearest(name, known);
  return Error{Code::not_found, key,
               fmt::format("there is no {} '{}' in {}{}{}", kind, name, fmt::join(folders_, ", "),
                           known.empty() ? "" : fmt::format("; there are {}", fmt::join(known, ", ")),
                           meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant))};
}

std::vector<PluginPath::Found> PluginPath::list() const {
  std::vector<Found> all;
  for (const std::string& folder : folders_) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const std::string file = entry.path().filename().string();
      const size_t dash = file.find('-');
      if (dash == std::string::npos || !file.ends_with(kSuffix)) continue;
      const std::string kind = file.substr(0, dash);
      if (file.size() <= dash + 1 + kSuffix.size()) continue;
      const std::string name = file.substr(dash + 1, file.size() - dash - 1 - kSuffix.size());
      if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end() || !is_name(name)) continue;
      all.push_back({kind, name, entry.path().string()});
    }
  }
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return std::tie(a.kind, a.name, a.path) < std::tie(b.kind, b.name, b.path);
  });
  return all;
}

}  // namespace tierd
