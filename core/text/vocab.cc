#include "core/text/vocab.h"

namespace tierd {

std::vector<bool> mergeable_tokens(const Vocab& vocab) {
  std::vector<bool> mergeable(vocab.pieces.size());
  for (size_t token = 0; token < mergeable.size(); ++token) {
    mergeable[token] = vocab.types[token] == TokenType::normal || vocab.types[token] == TokenType::unused;
  }
  if (!vocab.added_tokens) return mergeable;
  for (const AddedToken& added : *vocab.added_tokens) {
    if (added.is_piece && vocab.types[added.token] == TokenType::user_defined) mergeable[added.token] = true;
  }
  return mergeable;
}

}  // namespace tierd
