// Which files of a repository make the model that is asked for. It looks at names alone, so that it says the
// same of a hub and of what lies in the cache.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/tierd/hub/repository.h"

namespace tierd {

struct HubChoice {
  std::string model;               // the file that is opened; empty: the folder
  std::vector<std::string> files;  // all that it needs, the weights last
  // Whether it would be the same whatever else the repository had: what lies in the cache may be less than
  // that.
  bool certain = false;
};

// Chooses as llama.cpp does: the file that is named; else the first GGUF file (by name) of the quant, with
// all its shards; else of Q4_K_M, of Q8_0, or any. Projectors and drafts are no models. A repository without
// GGUF files is a Hugging Face folder: its safetensors with their index, configuration and tokenizer. Error:
// not_found, which names `origin` and what is there instead.
Result<HubChoice> choose_files(std::vector<std::string> names, const HubRequest& request,
                               const std::string& origin);

}  // namespace tierd
