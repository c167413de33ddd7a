// llama2.c's checkpoints: a header of plain integers, then f32 tensors in a fixed order.
#pragma once

#include <memory>
#include <string>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/formats/model_file.h"

namespace tierd {

// True where the file begins as version 1 and later do, or as version 0 does: seven integers that could be a
// model's shape.
bool looks_like_llama2c(const File& file);

// Versions 0 and 1. The size of the file must be what the header says.
Result<std::unique_ptr<TensorSource>> open_llama2c(File file, const ModelFileOptions& options);

}  // namespace tierd
