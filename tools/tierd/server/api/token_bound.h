// A lower bound of the tokens that a text has, found in one pass and without memory: what cannot fit a
// context is refused before it is tokenized, which takes about a hundred bytes for each of the text's.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/model/text/tokenizer.h"

namespace tierd {

class TokenBound {
 public:
  explicit TokenBound(const Tokenizer& tokenizer);

  // Returns a number of tokens that `text` has at least, whatever stands before or behind it.
  uint64_t least_tokens(std::string_view text) const;

 private:
  // [bytes] One divided by the length of the longest token that contains the byte. A token of n bytes
  // contributes at most n times 1/n = 1 to the sum over a text. 0: the byte may be part of no token at all.
  std::array<double, 256> share_{};
};

}  // namespace tierd
