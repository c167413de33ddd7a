// A vocabulary in which any ids are a text: made-up words of equal length, each matched as a whole.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Returns <unk>, <s>, </s>, the 256 bytes, then words. Texts begin without <s>, so that their tokens are the
// words alone. `size` is above kFirstPlantedWord.
Vocab planted_vocab(uint32_t size);

inline constexpr uint32_t kFirstPlantedWord = 3 + 256;

// Returns whether the configuration has room for words. Error: invalid_argument, naming the model.
Status check_planted_vocab(const ModelConfig& config);

}  // namespace tierd
