// Where plugins are found: KIND-NAME.so in one of a few folders. Nothing is opened or executed to find one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

class PluginPath {
 public:
  // Folders that do not exist are passed over when a plugin is looked for. One that is named twice counts
  // once.
  explicit PluginPath(std::vector<std::string> folders);

  // The folders of a list such as "a:b"; that of an installation, beside the running program
  // ("../lib/tierd").
  static std::vector<std::string> split(std::string_view list);
  static std::string installed();
  // Where plugins are looked for: `first`, a list such as "a:b", then $TIERD_PLUGIN_PATH, then `installed`.
  static PluginPath usual(std::string_view first);

  // The file of a plugin that the configuration names at `key` (empty: "KIND.name"). Errors: invalid_argument
  // for a name that no plugin can have; not_found with the names of that kind that there are;
  // invalid_argument when two folders have one of that name, with both.
  Result<std::string> find(std::string_view kind, std::string_view name, std::string_view key = {}) const;

  struct Found {
    std::string kind, name, path;
  };
  // What lies on the path, by file names alone, sorted; of a name in two folders both.
  std::vector<Found> list() const;

  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::vector<std::string> folders_;
};

}  // namespace tierd
