#include "core/model/text/piece_matcher.h"

namespace tierd {
namespace {

uint64_t edge(uint32_t node, char byte) {
  return uint64_t{node} << 8 | static_cast<uint8_t>(byte);
}

}  // namespace

void PieceMatcher::add(std::string_view piece, uint32_t token) {
  if (piece.empty()) return;
  first_bytes_.set(static_cast<uint8_t>(piece[0]));
  uint32_t node = 0;
  for (const char byte : piece) {
    const auto [it, added] =
        edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(token_of_node_.size()));
    if (added) token_of_node_.push_back(kNoToken);
    node = it->second;
  }
  token_of_node_[node] = token;
}

PieceMatcher::Match PieceMatcher::longest_at(std::string_view text, size_t at) const {
  Match match;
  if (!first_bytes_.test(static_cast<uint8_t>(text[at]))) return match;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const auto it = edges_.find(edge(node, text[i]));
    if (it == edges_.end()) break;
    node = it->second;
    if (token_of_node_[node] != kNoToken) match = {token_of_node_[node], i + 1 - at};
  }
  return match;
}

}  // namespace tierd
