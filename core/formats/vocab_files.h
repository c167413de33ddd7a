// Finds the tokenizer files of a model and applies its configuration to them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/model_file.h"
#include "core/model/text/vocab.h"

namespace tierd {

struct FoundVocab {
  std::optional<Vocab> vocab;      // none if the model has none
  std::vector<std::string> files;  // all files that were read
};

// Reads the tokenizer named by the user; finds nothing if none is named.
Result<FoundVocab> read_chosen_vocab(uint32_t vocab_size, const ModelFileOptions& options);

// Takes the first of: the one named by the user, tokenizer.json, tokenizer.model, vocab.json with merges.txt.
// Special tokens are those of config.json, generation_config.json and tokenizer_config.json.
Result<FoundVocab> find_hf_vocab(const std::string& folder, uint32_t vocab_size,
                                 const ModelFileOptions& options);

// Takes the one named by the user, or tok<vocab_size>.bin or tokenizer.bin beside the checkpoint.
Result<FoundVocab> find_llama2c_vocab(const std::string& checkpoint, uint32_t vocab_size,
                                      const ModelFileOptions& options);

}  // namespace tierd
