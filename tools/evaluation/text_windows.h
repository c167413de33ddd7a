// Splits a text into the windows in which a model is measured, each from an empty context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/tokenizer.h"

namespace tierd {

inline constexpr uint64_t kLongestText = uint64_t{1} << 30;  // bytes

// The tokens of a text that are read.
struct TextRange {
  uint64_t skip = 0;
  uint64_t tokens = 0;  // at most so many, without the BOS of each window; 0: all
};

// Returns windows of `context` tokens; each begins with the tokenizer's BOS. A last window of one token,
// which predicts nothing, is left out.
std::vector<std::vector<uint32_t>> text_windows(const Tokenizer& tokenizer, const std::string& text,
                                                const TextRange& range, uint32_t context);

// The same for a file. Errors: those of read_whole_file; invalid_argument if no window remains.
Result<std::vector<std::vector<uint32_t>>> read_text_windows(const Tokenizer& tokenizer,
                                                             const std::string& file, const TextRange& range,
                                                             uint32_t context);

}  // namespace tierd
