// Writes a TensorSource as a GGUF v3 file that llama.cpp loads.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Matrices keep their encoding, vectors become f32; rows of q and k are in llama.cpp's rotary order. The file
// is written as `<path>.partial`, synced, then renamed. Errors: unsupported (an architecture, position kind
// or rope scaling that this writer cannot express), no_space, io_error.
Status write_gguf(const TensorSource& source, const std::string& path, bool quiet);
// Returns write_gguf's error `unsupported` before any work.
Status check_gguf(const TensorSource& source);
// Writes the same file with holes for all weights: enough to plan a model of any size, in some kilobytes.
Status write_hollow_gguf(const TensorSource& source, const std::string& path);

}  // namespace tierd
