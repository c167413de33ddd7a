// A lower bound of a text's tokens, found in one pass without allocation. A text that cannot fit the context
// is refused before it is tokenized, which takes about a hundred bytes for each byte of the text.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/model/text/tokenizer.h"

namespace tierd {

class TokenBound {
 public:
  explicit TokenBound(const Tokenizer& tokenizer);

  // Returns a lower bound of the tokens of `text`, whatever precedes or follows it.
  uint64_t least_tokens(std::string_view text) const;

 private:
  // [bytes] One divided by the length of the longest token that contains the byte. A token of n bytes
  // contributes at most n times 1/n = 1 to the sum over a text. 0: the byte may be part of no token at all.
  std::array<double, 256> share_{};
};

}  // namespace tierd
