// A TensorSource as a GGUF v3 file that llama.cpp loads.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Matrices keep their encoding, vectors become f32; rows of q and k lie as llama.cpp turns them. Written as
// `<path>.partial`, synced, then renamed. Errors: unsupported (an architecture, position kind or rope scaling
// that has no place in GGUF here), no_space, io_error.
Status write_gguf(const TensorSource& source, const std::string& path, bool quiet);
// Whether it could: the same error `unsupported`, before any work.
Status check_gguf(const TensorSource& source);
// The same with holes in the place of all weights: what a model of any size is planned by, in some kilobytes.
Status write_hollow_gguf(const TensorSource& source, const std::string& path);

}  // namespace tierd
