// Which tokenizer files belong to a model, and what its configuration adds to them.
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
  std::optional<Vocab> vocab;      // none where the model brings none
  std::vector<std::string> files;  // that were read
};

// The tokenizer that the user names; nothing where he names none.
Result<FoundVocab> read_chosen_vocab(uint32_t vocab_size, const ModelFileOptions& options);

// In this order: the chosen one, tokenizer.json, tokenizer.model, vocab.json with merges.txt; special tokens
// as config.json, generation_config.json and tokenizer_config.json say.
Result<FoundVocab> find_hf_vocab(const std::string& folder, uint32_t vocab_size,
                                 const ModelFileOptions& options);

// The chosen one, or tok<vocab_size>.bin or tokenizer.bin beside the checkpoint.
Result<FoundVocab> find_llama2c_vocab(const std::string& checkpoint, uint32_t vocab_size,
                                      const ModelFileOptions& options);

}  // namespace tierd
