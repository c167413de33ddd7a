// A Hugging Face folder: config.json, safetensors in one file or in shards with an index, a tokenizer.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/formats/model_file.h"

namespace tierd {

// `weights`: the name of one safetensors file to use; empty: model.safetensors, else the shards of
// model.safetensors.index.json.
Result<std::unique_ptr<TensorSource>> open_hf_folder(const std::string& folder, const std::string& weights,
                                                     const ModelFileOptions& options);

// Returns whether the folder has either of these files.
bool has_safetensors(const std::string& folder);

}  // namespace tierd
