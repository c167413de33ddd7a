// A text as a model reads it when it is to be measured: in windows, each from an empty context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/tokenizer.h"

namespace tierd {

inline constexpr uint64_t kLongestText = uint64_t{1} << 30;  // bytes

// Which tokens of a text are read.
struct TextRange {
  uint64_t skip = 0;
  uint64_t tokens = 0;  // at most so many, counted before BOS is put in front of each window; 0: all
};

// Windows of `context` tokens; each begins with what the tokenizer puts before a text (BOS). A rest of one
// token, of which nothing can be told, is left out.
std::vector<std::vector<uint32_t>> text_windows(const Tokenizer& tokenizer, const std::string& text,
                                                const TextRange& range, uint32_t context);

// The same of a file. Errors: those of read_text_file; invalid_argument where nothing is
// left of it.
Result<std::vector<std::vector<uint32_t>>> read_text_windows(const Tokenizer& tokenizer,
                                                             const std::string& file, const TextRange& range,
                                                             uint32_t context);

}  // namespace tierd
