// The families of Hugging Face folders: what transformers knows of each by its model_type.
#pragma once

#include <string>
#include <string_view>

#include "core/base/json_fields.h"
#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

struct HfFamily {
  std::string_view model_type;
  // Reads the fields of config.json. Errors: corrupt, naming the wrong key; unsupported, naming the setting.
  Status (*read)(const JsonFields& f, ModelConfig& c);
  float norm_offset = 0;          // norms multiply by more than their weights, by this
  bool predicts_further = false;  // layers after the last one predict further tokens
};

// Returns nullptr if there is none.
const HfFamily* find_hf_family(std::string_view model_type);
std::string hf_family_names();  // with commas, for messages

}  // namespace tierd
