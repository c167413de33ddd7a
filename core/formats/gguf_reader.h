// A GGUF file, or a model split over several.
#pragma once

#include <memory>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/formats/model_file.h"

namespace tierd {

// `file`: the model, or the first of its shards NAME-00001-of-0000N.gguf; the others are opened beside it.
// Architectures: llama (Mistral's files say llama too) and qwen2.
Result<std::unique_ptr<TensorSource>> open_gguf(File file, const ModelFileOptions& options);

}  // namespace tierd
