// The rotary settings of GGUF files.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/formats/gguf_header.h"
#include "core/model/config.h"

namespace tierd {

// Reads the keys "rope.*" of an architecture into config.rope; the context is known. Errors: corrupt;
// unsupported, for a key that changes results and is not read here.
Status read_gguf_rope(const GgufHeader& header, const std::string& prefix, ModelConfig& config);

}  // namespace tierd
