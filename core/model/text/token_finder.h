// Finds the tokens that are matched as a whole in text: control tokens and tokens added to a model, with the
// rules of Hugging Face's files for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/text/piece_matcher.h"
#include "core/model/text/vocab.h"

namespace tierd {

class TokenFinder {
 public:
  // `found_as`: the text to match; an empty one never matches. `rules`: those of the token.
  void add(std::string_view found_as, const AddedToken& rules);

  // Calls on_text for the text between tokens (never empty) and on_token for each token, in order. White
  // space that a token's rules remove goes to neither.
  template <class OnText, class OnToken>
  void split(std::string_view text, OnText on_text, OnToken on_token) const {
    size_t done = 0;
    for (const Found& found : find(text)) {
      if (found.begin > done) on_text(text.substr(done, found.begin - done));
      on_token(found.token);
      done = std::max(done, found.end);
    }
    if (done < text.size()) on_text(text.substr(done));
  }

 private:
  struct Found {
    uint32_t token = kNoToken;
    size_t begin = 0;
    size_t end = 0;
  };
  // Returns the leftmost longest matches.
  std::vector<Found> find(std::string_view text) const;

  PieceMatcher pieces_;
  std::unordered_map<uint32_t, AddedToken> rules_;  // of tokens with rules
};

// The tokens of a vocabulary that are matched as a whole, in two passes: `first` on the text, `second` on the
// text between those matches.
struct TokenFinders {
  TokenFinder first;
  TokenFinder second;

  // `control`: also match control tokens, which users must not write.
  static TokenFinders of(const Vocab& vocab, bool control);
};

}  // namespace tierd
