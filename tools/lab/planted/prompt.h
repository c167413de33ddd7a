// Texts for a planted model: consecutive ids from random starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// `documents` runs of `tokens` ids, each within a part of the vocabulary's words of its own, for a model
// whose vocabulary is planted_vocab. Error: invalid_argument where they do not fit.
Result<std::vector<std::vector<uint32_t>>> planted_prompts(const ModelConfig& config, uint64_t seed,
                                                           uint32_t documents, uint32_t tokens);

// The text whose tokens are `ids`, which are words.
std::string planted_text(const Vocab& vocab, const std::vector<uint32_t>& ids);

// Writes each prompt's text into a file of its own, <stem>.txt, <stem>-2.txt, …, having found that its tokens
// are the ids. Errors: io_error, no_space.
Status write_planted_prompts(const TensorSource& source, const std::string& stem,
                             const std::vector<std::vector<uint32_t>>& prompts);

}  // namespace tierd
