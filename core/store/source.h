// Opens a model in the order of channels that a store of it is to have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

struct SourceOptions {
  // See ModelFileOptions (core/formats/model_file.h).
  std::string tokenizer;
  uint32_t zeros_percent = 0;
  // A file of rates: the channels of layout channel-group are ordered by them, in groups of so many layers;
  // see in_order_of_use. Empty: by their numbers.
  std::string order = {};
  uint32_t layer_group = 1;
  bool expert_order = false;  // order the channels of experts, too
};

// `path` as open_model_file takes it. Errors: those of open_model_file and in_order_of_use; invalid_argument
// for a store.
Result<std::unique_ptr<TensorSource>> open_source(const std::string& path, const SourceOptions& options = {});

// Returns true for a folder that holds a store's manifest.
bool is_store(const std::string& path);

}  // namespace tierd
