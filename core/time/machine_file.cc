#include "core/time/machine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBase = "base";

// Recursion is bounded by the depth that parse_toml accepts.
void add_missing(toml::table& into, const toml::table& from) {
  for (const auto& [key, node] : from) {
    toml::node* const there = into.get(key);
    if (there == nullptr) {
      into.insert(key, node);
    } else if (there->is_table() && node.is_table()) {
      add_missing(*there->as_table(), *node.as_table());
    }
  }
}

fs::path file_itself(const fs::path& path) {
  std::error_code unknown;
  const fs::path found = fs::canonical(path, unknown);
  return unknown ? path : found;
}

}  // namespace

fs::path machines_folder() {
  const char* configs = std::getenv("TIERD_CONFIGS");
  return fs::path(configs != nullptr && *configs != '\0' ? configs : TIERD_CONFIGS_DIR) / "hardware";
}

Result<NamedToml> read_machine_file(const std::string& name) {
  TIERD_ASSIGN(NamedToml file, read_named_toml(machines_folder(), name, "machine"));
  const auto wrong = [&](std::string what) {
    return Error{Code::invalid_argument, file.path.string(), std::move(what)};
  };
  std::vector<fs::path> started_from = {file_itself(file.path)};
  while (const toml::node* const node = file.table.get(kBase)) {
    const std::string base = node->value_or(std::string());
    if (!node->is_string() || base.empty())
      return wrong("'base' is not a string; the name of a description is expected");
    const auto below = read_named_toml(machines_folder(), base, "machine");
    if (!below.ok()) return wrong(fmt::format("'base': {}", below.error().line()));
    const fs::path path = file_itself(below->path);
    if (std::ranges::find(started_from, path) != started_from.end())
      return wrong(fmt::format("'base': '{}' is its own base, directly or through others", base));
    started_from.push_back(path);
    file.table.erase(kBase);
    add_missing(file.table, below->table);
  }
  return file;
}

}  // namespace tierd
