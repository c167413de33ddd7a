// The families of Hugging Face folders that are mixtures of experts, and what dense families share with them.
#pragma once

#include <optional>

#include "core/base/json_fields.h"
#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

// Reads what Llama and its many relatives have in common. `rotary`: the share of a head that is rotated if
// the file does not say; nothing: all of it, whatever the file says, or the file is refused.
Status read_hf_llama_like(const JsonFields& f, ModelConfig& c, std::optional<float> rotary = {});
// Reads the window of Qwen 2 and 3, which the first layers do not have.
Status read_qwen2_window(const JsonFields& f, ModelConfig& c);

Status read_hf_mixtral(const JsonFields& f, ModelConfig& c);
Status read_hf_qwen2_moe(const JsonFields& f, ModelConfig& c);
Status read_hf_qwen3_moe(const JsonFields& f, ModelConfig& c);
Status read_hf_olmoe(const JsonFields& f, ModelConfig& c);
Status read_hf_glm4_moe(const JsonFields& f, ModelConfig& c);
Status read_hf_gpt_oss(const JsonFields& f, ModelConfig& c);

}  // namespace tierd
