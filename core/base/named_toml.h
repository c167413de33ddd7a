// TOML files that are selected by name in a folder of configs/: shapes of models, sparsity profiles.
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

// `name`: the name of a file in `folder` without its ending, or the path of a file that ends in .toml.
// Errors: not_found, listing the names of all `what`s; invalid_argument naming file and line.
Result<NamedToml> read_named_toml(const std::filesystem::path& folder, const std::string& name,
                                  std::string_view what);

// Returns the names of the files in `folder`, sorted; none if the folder does not exist.
std::vector<std::string> toml_names(const std::filesystem::path& folder);

}  // namespace tierd
