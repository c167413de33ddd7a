// Reads config.json of a Hugging Face model.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

// The limit of config.json and of the other small JSON files beside it.
inline constexpr uint64_t kMaxConfigBytes = 16 << 20;

// Reads a family of hf_families.h, or the text model of one that also reads images; the result is validated.
// Errors: not_found; corrupt, naming the wrong key; unsupported, naming the setting that tierd would compute
// wrongly.
Result<ModelConfig> read_hf_config(const std::string& path);

}  // namespace tierd
