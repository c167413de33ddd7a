#include "core/model/named_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

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
  try {
    toml::table table = toml::parse_file(path.string());
    return NamedToml{std::move(path), std::move(table)};
  } catch (const toml::parse_error& error) {
    return Error{Code::invalid_argument, fmt::format("{}:{}", path.string(), error.source().begin.line),
                 std::string(error.description())};
  } catch (const std::exception& error) {
    return Error{Code::io_error, path.string(), error.what()};
  }
}

}  // namespace tierd
