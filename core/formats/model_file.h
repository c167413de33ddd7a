// Opens a model of any supported format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

struct ModelFileOptions {
  // A tokenizer to use instead of the model's own: tokenizer.model, tokenizer.json, llama2.c's tokenizer.bin,
  // or GPT-2's vocab.json (merges.txt beside it). Empty: the files beside the model.
  std::string tokenizer;
  // The share of zeros, in per cent, that a shape is taken to have in each matrix of its layers. 0 for any
  // other model.
  uint32_t zeros_percent = 0;
};

// `path`: a GGUF file (the first of its shards), a folder with one such file or set, a Hugging Face folder, a
// .safetensors file inside one, a llama2.c checkpoint (.bin, version 0 or 1), or a shape without weights
// (.toml, shape_source.h). Errors: not_found, corrupt, unsupported, each naming file and key or offset;
// invalid_argument for zeros that are assumed of weights that are there.
Result<std::unique_ptr<TensorSource>> open_model_file(const std::string& path,
                                                      const ModelFileOptions& options = {});

}  // namespace tierd
