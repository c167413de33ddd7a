// Opens a model of whatever format.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

struct SourceOptions {
  // A tokenizer to use instead of what the model brings: tokenizer.model, tokenizer.json, llama2.c's
  // tokenizer.bin, or GPT-2's vocab.json (merges.txt beside it). Empty: what lies beside the model.
  std::string tokenizer;
  // A shape is taken to have so many per cent zeros in each matrix of its layers; any other model has 0 here.
  uint32_t zeros_percent = 0;
  // A file by whose rates the channels of layout channel-group are to lie, in groups of so many layers; see
  // in_order_of_use. Empty: by their numbers.
  std::string order = {};
  uint32_t layer_group = 1;
  bool expert_order = false;  // the channels of experts, too
};

// `path`: a GGUF file (the first of its shards), a folder with one such file or set, a Hugging Face folder, a
// .safetensors file inside one, or a llama2.c checkpoint (.bin, version 0 or 1); or, ending in .toml, a shape
// without weights (shape_source.h). Errors: not_found, corrupt, unsupported, each naming file and key or
// offset; invalid_argument for zeros that are assumed of weights that are there.
Result<std::unique_ptr<TensorSource>> open_source(const std::string& path, const SourceOptions& options = {});

// True for a folder that holds (or once whole would hold) a store's manifest.
bool is_store(const std::string& path);

}  // namespace tierd
