// Opens a model in one GGUF file or in several.
#pragma once

#include <memory>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/formats/model_file.h"

namespace tierd {

// `file`: the model, or the first of its shards NAME-00001-of-0000N.gguf; the others are opened beside it.
// Architectures: llama (files of Mistral and Mixtral say llama too), qwen2, qwen3moe and olmoe.
Result<std::unique_ptr<TensorSource>> open_gguf(File file, const ModelFileOptions& options);

}  // namespace tierd
