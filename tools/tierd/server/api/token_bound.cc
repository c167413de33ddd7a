#include "tools/tierd/server/api/token_bound.h"

#include <algorithm>
#include <string>

namespace tierd {
namespace {

// Covers the rounding of a sum over all bytes of a request.
constexpr double kRounding = 1e-3;

}  // namespace

TokenBound::TokenBound(const Tokenizer& tokenizer) {
  const Vocab& vocab = tokenizer.vocab();
  std::array<size_t, 256> longest{};
  std::array<bool, 256> alone{};
  size_t byte_tokens = 0;
  const auto note = [&](std::string_view bytes) {
    for (const char byte : bytes) {
      size_t& most = longest[static_cast<unsigned char>(byte)];
      most = std::max(most, bytes.size());
    }
  };
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    // A text may also contain a piece as the vocabulary writes it: "<s>", or sentencepiece's space.
    note(vocab.pieces[token]);
    if (token == vocab.unknown) continue;
    if (vocab.types[token] == TokenType::byte) {
      ++byte_tokens;
      continue;
    }
    const std::string bytes = tokenizer.piece(token, true);
    note(bytes);
    if (bytes.size() == 1) alone[static_cast<unsigned char>(bytes.front())] = true;
  }
  if (byte_tokens == alone.size()) alone.fill(true);
  // A byte that is no token by itself may become, with its neighbours, the unknown token, or no token.
  for (size_t byte = 0; byte < share_.size(); ++byte)
    share_[byte] = alone[byte] ? 1.0 / static_cast<double>(std::max<size_t>(longest[byte], 1)) : 0;
}

uint64_t TokenBound::least_tokens(std::string_view text) const {
  std::array<uint64_t, 256> count{};
  for (const char byte : text) ++count[static_cast<unsigned char>(byte)];
  double sum = 0;
  for (size_t byte = 0; byte < share_.size(); ++byte) sum += share_[byte] * static_cast<double>(count[byte]);
  return static_cast<uint64_t>(std::max(0.0, sum - kRounding));
}

}  // namespace tierd
