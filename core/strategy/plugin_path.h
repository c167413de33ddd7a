// Finds plugins: KIND-NAME.so in one of a few folders. Opens and executes no file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

class PluginPath {
 public:
  // `find` skips folders that do not exist. A folder that is named twice counts once.
  explicit PluginPath(std::vector<std::string> folders);

  // Return the folders of a list such as "a:b"; the installation's folder, "../lib/tierd" beside the program.
  static std::vector<std::string> split(std::string_view list);
  static std::string installed();
  // Returns the search path: `first`, a list such as "a:b", then $TIERD_PLUGIN_PATH, then `installed`.
  static PluginPath usual(std::string_view first);

  // Returns the file of a plugin that the configuration names at `key` (empty: "KIND.name"). Errors:
  // invalid_argument for an invalid name; not_found with the existing names of that kind; invalid_argument,
  // with both files, if two folders have the name.
  Result<std::string> find(std::string_view kind, std::string_view name, std::string_view key = {}) const;

  struct Found {
    std::string kind, name, path;
  };
  // Returns all plugins on the path, by file names alone, sorted; both files of a name in two folders.
  std::vector<Found> list() const;

  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::vector<std::string> folders_;
};

}  // namespace tierd
