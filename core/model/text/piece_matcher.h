// Finds tokens (control and user-defined symbols) as a whole in text: a trie over their bytes.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/text/vocab.h"

namespace tierd {

class PieceMatcher {
 public:
  struct Match {
    uint32_t token = kNoToken;
    size_t bytes = 0;
  };

  // Empty pieces are left out, because they never match.
  void add(std::string_view piece, uint32_t token);
  bool empty() const { return first_bytes_.none(); }

  // Returns the longest piece at position `at` of `text`; `bytes` is 0 if there is none.
  Match longest_at(std::string_view text, size_t at) const;

  // Cuts `text` at its leftmost longest pieces: calls on_text for the text between them (never empty) and
  // on_token for each piece, in order.
  template <class OnText, class OnToken>
  void split(std::string_view text, OnText on_text, OnToken on_token) const {
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const Match match = longest_at(text, at);
      if (match.bytes == 0) {
        ++at;
        continue;
      }
      if (at > begin) on_text(text.substr(begin, at - begin));
      on_token(match.token);
      begin = at += match.bytes;
    }
    if (begin < text.size()) on_text(text.substr(begin));
  }

 private:
  std::bitset<256> first_bytes_;
  std::unordered_map<uint64_t, uint32_t> edges_;      // node << 8 | byte -> node
  std::vector<uint32_t> token_of_node_ = {kNoToken};  // node 0 is the root
};

}  // namespace tierd
