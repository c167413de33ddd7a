// The vocabulary of a tiktoken file. The core refuses such files, because splitting rules and special tokens
// are only in their authors' programs. A test knows them.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/text/byte_alphabet.h"
#include "core/model/text/vocab.h"

namespace tierd {

inline std::string bytes_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char digit : text) {
    const size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) break;  // '='
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((n_bits += 6) < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>(bits >> n_bits & 0xff);
  }
  return bytes;
}

// Lines "base64 rank", with ranks in order from 0. Any two tokens whose union is a token merge, by its rank.
inline Vocab vocab_of_tiktoken(const std::string& file, const std::string& pre_tokenizer) {
  Vocab vocab;
  vocab.kind = VocabKind::byte_bpe;
  vocab.pre_tokenizer = pre_tokenizer;
  vocab.add_bos = vocab.add_space_prefix = false;
  const auto piece_of = [](std::string_view bytes) {
    std::string piece;
    for (const char byte : bytes) piece += byte_character(static_cast<uint8_t>(byte));
    return piece;
  };
  std::vector<std::string> tokens;
  std::unordered_map<std::string_view, std::string> pieces;
  std::istringstream lines(file);
  for (std::string base64, rank; lines >> base64 >> rank;) tokens.push_back(bytes_of_base64(base64));
  for (const std::string& token : tokens) pieces.emplace(token, vocab.pieces.emplace_back(piece_of(token)));
  for (const std::string_view token : tokens) {
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = pieces.find(token.substr(0, cut));
      const auto right = pieces.find(token.substr(cut));
      if (left == pieces.end() || right == pieces.end()) continue;
      vocab.merges.push_back(left->second + " " + right->second);
    }
  }
  vocab.types.assign(vocab.pieces.size(), TokenType::normal);
  return vocab;
}

}  // namespace tierd
