// The shapes of public models as TOML files (configs/models/*.toml): a configuration without weights, for
// synthetic stores and for modelled runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

// `name`: "llama-2-7b", a file of configs/models ($TIERD_CONFIGS/models if that is set), or the path of a
// file ending in .toml. Keys are the names of config_fields.h; n_kv_heads defaults to n_heads, head_dim to
// d_model / n_heads, name to the file's name. Errors: not_found (listing the shapes), invalid_argument naming
// file, line and key.
Result<ModelConfig> read_shape(const std::string& name);

// Returns the names that read_shape knows, sorted.
std::vector<std::string> known_shapes();

// Returns the folder of the shapes: configs/models, or $TIERD_CONFIGS/models.
std::filesystem::path shapes_folder();

}  // namespace tierd
