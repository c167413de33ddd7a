#include "core/model/text/byte_bpe.h"

#include <fmt/format.h>

#include <utility>

#include "core/model/text/byte_alphabet.h"
#include "core/model/text/pre_tokenizer_rules.h"

namespace tierd {
Result<std::unique_ptr<Tokenizer>> ByteBpe::make(Vocab vocab, std::string_view origin) {
  TIERD_ASSIGN(Normalizer normalizer, Normalizer::make(vocab.normalizers, origin));
  const bool by_name = vocab.cuts.empty();
  TIERD_ASSIGN(PreTokenizer pre_tokenizer,
               by_name ? PreTokenizer::make(vocab.pre_tokenizer, origin)
                       : PreTokenizer::make(vocab.cuts, LastByteLevel::only_cuts, origin));
  std::unique_ptr<ByteBpe> made(
      new ByteBpe(std::move(vocab), std::move(normalizer), std::move(pre_tokenizer)));
  made->whole_words_first_ = by_name ? find_pre_tokenizer_rule(made->vocab_.pre_tokenizer)->whole_words_first
                                     : made->vocab_.whole_words_first;
  made->index_tokens();
  TIERD_ASSIGN(made->merges_, merge_table(made->vocab_.merges, made->tokens_, origin));
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

std::vector<uint32_t> ByteBpe::encode(std::string_view text, bool add_special, bool parse_special) const {
  std::vector<uint32_t> out = begin_tokens(add_special);
  std::vector<MergeSymbol> symbols;
  const TokenFinders& finders = parse_special ? control_and_user_defined_ : user_defined_;
  const auto add_token = [&](uint32_t token) { out.push_back(token); };
  finders.first.split(
      text,
      [&](std::string_view part) {
        const std::string normalized = normalizer_.empty() ? std::string() : normalizer_.apply(part);
        const std::string_view whole = normalizer_.empty() ? part : normalized;
        const auto add_words = [&](std::string_view inner) {
          const bool at_start = part.data() == text.data() && inner.data() == whole.data();
          for (const std::string_view word : pre_tokenizer_.split(inner, at_start))
            encode_word(word, symbols, out);
        };
        finders.second.split(whole, add_words, add_token);
      },
      add_token);
  return out;
}

void ByteBpe::encode_word(std::string_view word, std::vector<MergeSymbol>& symbols,
                          std::vector<uint32_t>& out) const {
  if (whole_words_first_) {
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
  merge_by_rank(symbols, merges_);
  for (const MergeSymbol& symbol : symbols) {
    if (symbol.bytes > 0 && symbol.token != kNoToken) out.push_back(symbol.token);
  }
}

std::string ByteBpe::piece(uint32_t token, bool special) const {
  if (token >= vocab_.pieces.size()) return {};
  const std::string& piece = piece_of(token);
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
