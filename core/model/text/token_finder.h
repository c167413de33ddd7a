// Finds the tokens of a vocabulary that text holds as a whole: control tokens and those that were added to a
// model, with the rules that Hugging Face's files have for each.
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
  // `found_as`: its text, empty ones are never found; `rules` of the token itself.
  void add(std::string_view found_as, const AddedToken& rules);

  // Calls on_text for what lies between tokens (never empty) and on_token for each, in order. White space
  // that a token takes is neither.
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
  // The leftmost longest ones.
  std::vector<Found> find(std::string_view text) const;

  PieceMatcher pieces_;
  std::unordered_map<uint32_t, AddedToken> rules_;  // of tokens that have some
};

// The tokens of a vocabulary that are found in text, in two steps: those that are looked for first, and in
// what lies between them the others.
struct TokenFinders {
  TokenFinder first;
  TokenFinder second;

  // `control`: also those that only a program may write.
  static TokenFinders of(const Vocab& vocab, bool control);
};

}  // namespace tierd
