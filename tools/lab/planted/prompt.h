// Texts for a planted model: consecutive ids from random starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Returns `documents` runs of `tokens` ids, each run within its own part of the vocabulary's words, for a
// model whose vocabulary is planted_vocab. Error: invalid_argument if they do not fit.
Result<std::vector<std::vector<uint32_t>>> planted_prompts(const ModelConfig& config, uint64_t seed,
                                                           uint32_t documents, uint32_t tokens);

// Returns the text whose tokens are `ids`, which are words.
std::string planted_text(const Vocab& vocab, const std::vector<uint32_t>& ids);

// Checks that each prompt's text has exactly the ids as its tokens, and writes it into its own file,
// <stem>.txt, <stem>-2.txt, … Errors: io_error, no_space.
Status write_planted_prompts(const TensorSource& source, const std::string& stem,
                             const std::vector<std::vector<uint32_t>>& prompts);

}  // namespace tierd
