// The names of tensors in Hugging Face folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/config.h"

namespace tierd {

// Returns tierd's name of a tensor, or the file's own name if tierd has none, for the error. A tensor that
// holds several has their names with "+" between them: "layers.0.q+k+v".
std::string hf_our_name(std::string_view theirs, const ModelConfig& config);

// Returns the number of the layer that a tensor belongs to, or nothing.
std::optional<uint32_t> hf_layer(std::string_view theirs);

}  // namespace tierd
