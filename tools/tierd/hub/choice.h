// Chooses the files of a repository that make the requested model. It looks at names alone, so that a hub and
// the cache give the same choice.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/tierd/hub/repository.h"

namespace tierd {

struct HubChoice {
  std::string model;               // the file to open; empty: the folder
  std::vector<std::string> files;  // all needed files, the weights last
  // Whether more files in the repository could not change the choice. The cache may hold only some of them.
  bool certain = false;
};

// Chooses as llama.cpp does: the named file; else the first GGUF file (by name) of the quant with all its
// shards; else one of Q4_K_M, of Q8_0, or any. Projectors and drafts are skipped. A repository without GGUF
// files is a Hugging Face folder: its safetensors with index, configuration and tokenizer. Error: not_found,
// which names `origin` and the files that exist.
Result<HubChoice> choose_files(std::vector<std::string> names, const HubRequest& request,
                               const std::string& origin);

}  // namespace tierd
