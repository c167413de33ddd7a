#include "core/model/text/vocab.h"

namespace tierd {

std::vector<bool> mergeable_tokens(const Vocab& vocab) {
  std::vector<bool> mergeable(vocab.pieces.size());
  for (size_t token = 0; token < mergeable.size(); ++token) {
    mergeable[token] = vocab.types[token] == TokenType::normal || vocab.types[token] == TokenType::unused;
  }
  if (!vocab.added_tokens) return mergeable;
  for (const AddedToken& added : *vocab.added_tokens) {
    const TokenType type = vocab.types[added.token];
    const bool whole = type == TokenType::user_defined || type == TokenType::control;
    if (added.is_piece && whole) mergeable[added.token] = true;
  }
  return mergeable;
}

}  // namespace tierd
