// Reads config.json of a Hugging Face model.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

// The limit of config.json and of the other small JSON files beside it.
inline constexpr uint64_t kMaxConfigBytes = 16 << 20;

// model_type: llama, mistral, qwen2, mixtral, qwen3_moe, olmoe, opt, falcon, persimmon or phi; the result is
// validated. Errors: not_found; corrupt, naming the wrong key; unsupported, naming the setting that tierd
// would compute wrongly.
Result<ModelConfig> read_hf_config(const std::string& path);

// Whether the norms of a model multiply by 1 more than their weights.
bool is_gemma(const ModelConfig& config);

}  // namespace tierd
