#include "core/base/named_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/toml_text.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".toml";

}  // namespace

std::vector<std::string> toml_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == kExtension) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<NamedToml> read_named_toml(const fs::path& folder, const std::string& name, std::string_view what) {
  const bool is_path = name.ends_with(kExtension);
  fs::path path = is_path ? fs::path(name) : folder / (name + std::string(kExtension));
  std::error_code ignored;
  if ((!is_path && name.find('/') != std::string::npos) || !fs::is_regular_file(path, ignored)) {
    return Error{Code::not_found, name,
                 fmt::format("no such {}; known are {}, or give a {} file", what,
                             fmt::join(toml_names(folder), ", "), kExtension)};
  }
  TIERD_ASSIGN(const std::string text, read_whole_file(path, kMostInputBytes));
  TIERD_ASSIGN(toml::table table, parse_toml(text, path.string()));
  return NamedToml{std::move(path), std::move(table)};
}

}  // namespace tierd
