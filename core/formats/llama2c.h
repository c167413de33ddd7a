// llama2.c checkpoints: a header of plain integers, then f32 tensors in a fixed order.
#pragma once

#include <memory>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/formats/model_file.h"

namespace tierd {

// Returns whether the file begins as version 1 and later do, or with seven integers that may be a model's
// shape, as version 0 does.
bool looks_like_llama2c(const File& file);

// Reads versions 0 and 1. The size of the file must be the size that its header implies.
Result<std::unique_ptr<TensorSource>> open_llama2c(File file, const ModelFileOptions& options);

}  // namespace tierd
