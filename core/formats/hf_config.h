// config.json of a Hugging Face model.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

// Families: llama, mistral, qwen2, opt; validated. Errors: not_found, corrupt (the key that is wrong),
// unsupported (the setting that this program would compute wrongly).
Result<ModelConfig> read_hf_config(const std::string& path);

}  // namespace tierd
