// The families of GGUF files: what llama.cpp knows of each by its name, and the keys that only some have.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/formats/gguf_header.h"
#include "core/model/config.h"

namespace tierd {

// The key, after the architecture's prefix, of the number of last layers that predict further tokens.
inline constexpr std::string_view kGgufFurtherLayers = "nextn_predict_layers";

// Error: unsupported, for an architecture that is none of them.
Status check_gguf_family(const GgufHeader& header, const std::string& architecture);

// Sets the switches of config.architecture, a known one, whose sizes are set, and reads the keys that belong
// to it. Error: unsupported, for a key that changes results and does not belong to it.
Status read_gguf_family(const GgufHeader& header, ModelConfig& config);

}  // namespace tierd
