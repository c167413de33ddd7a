#include "core/model/text/byte_bpe.h"

#include <fmt/format.h>

#include <utility>

#include "core/model/text/byte_alphabet.h"

namespace tierd {
namespace {

uint64_t pair_key(uint32_t left, uint32_t right) {
  return uint64_t{left} << 32 | right;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> ByteBpe::make(Vocab vocab, std::string_view origin) {
  TIERD_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::make(vocab.pre_tokenizer, origin));
  std::unique_ptr<ByteBpe> made(new ByteBpe(std::move(vocab), std::move(pre_tokenizer)));
  made->index_tokens();
  TIERD_TRY(made->index_merges(origin));
  return std::unique_ptr<Tokenizer>(std::move(made));
}

void ByteBpe::index_tokens() {
  for (uint32_t token = 0; token < vocab_.pieces.size(); ++token) {
    tokens_.emplace(vocab_.pieces[token], token);
  }
  user_defined_ = TokenFinders::of(vocab_, false);
  control_and_user_defined_ = TokenFinders::of(vocab_, true);
  // Some vocabularies lack bytes that their training text did not have. Such bytes become the unknown token,
  // or are left out, as in other programs.
  mergeable_ = mergeable_tokens(vocab_);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto it = tokens_.find(byte_character(static_cast<uint8_t>(byte)));
    const bool found = it != tokens_.end() && mergeable_[it->second];
    byte_tokens_[byte] = found ? it->second : vocab_.unknown;
  }
}

Status ByteBpe::index_merges(std::string_view origin) {
  merges_.reserve(vocab_.merges.size());
  for (uint32_t rank = 0; rank < vocab_.merges.size(); ++rank) {
    const std::string& merge = vocab_.merges[rank];
    const auto fail = [&](const std::string& what) {
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("merge {} (\"{}\") {}", rank, merge, what)};
    };
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos || space + 1 == merge.size())
      return fail("is not two pieces separated by a space");
    const std::string_view left = std::string_view(merge).substr(0, space);
    const std::string_view right = std::string_view(merge).substr(space + 1);
    uint32_t tokens[3] = {};
    const std::string parts[3] = {std::string(left), std::string(right),
                                  std::string(left) + std::string(right)};
    for (int i = 0; i < 3; ++i) {
      const auto it = tokens_.find(parts[i]);
      if (it == tokens_.end())
        return fail(fmt::format("needs \"{}\", which is not in the vocabulary", parts[i]));
      tokens[i] = it->second;
    }
    merges_.try_emplace(pair_key(tokens[0], tokens[1]),
                        Merged{rank, tokens[2]});  // the first of equal merges counts
  }
  return {};
}

std::vector<uint32_t> ByteBpe::encode(std::string_view text, bool add_special, bool parse_special) const {
  std::vector<uint32_t> out;
  if (add_special && vocab_.add_bos && vocab_.bos != kNoToken) out.push_back(vocab_.bos);
  std::vector<MergeSymbol> symbols;
  const TokenFinders& finders = parse_special ? control_and_user_defined_ : user_defined_;
  const auto add_token = [&](uint32_t token) { out.push_back(token); };
  const auto add_words = [&](std::string_view part) {
    for (const std::string_view word : pre_tokenizer_.split(part)) encode_word(word, symbols, out);
  };
  finders.first.split(
      text, [&](std::string_view part) { finders.second.split(part, add_words, add_token); }, add_token);
  return out;
}

void ByteBpe::encode_word(std::string_view word, std::vector<MergeSymbol>& symbols,
                          std::vector<uint32_t>& out) const {
  if (pre_tokenizer_.whole_words_first()) {
    std::string piece;
    for (const char byte : word) piece += byte_character(static_cast<uint8_t>(byte));
    const auto it = tokens_.find(piece);
    if (it != tokens_.end() && mergeable_[it->second]) {
      out.push_back(it->second);
      return;
    }
  }
  symbols.clear();
  for (size_t i = 0; i < word.size(); ++i) {
    symbols.push_back({i, 1, byte_tokens_[static_cast<uint8_t>(word[i])]});
  }
  merge_symbols(symbols, [&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merged> {
    const auto it = merges_.find(pair_key(left.token, right.token));
    if (it == merges_.end()) return std::nullopt;
    return it->second;
  });
  for (const MergeSymbol& symbol : symbols) {
    if (symbol.bytes > 0 && symbol.token != kNoToken) out.push_back(symbol.token);
  }
}

std::string ByteBpe::piece(uint32_t token, bool special) const {
  if (token >= vocab_.pieces.size()) return {};
  const std::string& piece = vocab_.pieces[token];
  switch (vocab_.types[token]) {
    case TokenType::control:
    case TokenType::unknown:
      return special ? piece : std::string();
    case TokenType::user_defined:
      return piece;
    case TokenType::normal:
    case TokenType::unused:
    case TokenType::byte:
      break;
  }
  return bytes_of_piece(piece);
}

}  // namespace tierd
