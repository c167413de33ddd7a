// TOML files that are called by their names, in a folder of configs/: shapes of models, profiles of sparsity.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <toml++/toml.h>

#include "core/base/result.h"

namespace tierd {

struct NamedToml {
  std::filesystem::path path;
  toml::table table;
};

// `name`: of a file in `folder` without its ending, or the path of a file that ends in .toml. Errors:
// not_found, which calls it a `what` and tells the names there are; invalid_argument naming file and line.
Result<NamedToml> read_named_toml(const std::filesystem::path& folder, const std::string& name,
                                  std::string_view what);

// Lists the names of the files in `folder`, sorted. There are none if the folder does not exist.
std::vector<std::string> toml_names(const std::filesystem::path& folder);

}  // namespace tierd
