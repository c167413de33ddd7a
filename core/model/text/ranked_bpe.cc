#include "core/model/text/ranked_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/utf8.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {

Result<std::unique_ptr<Tokenizer>> RankedBpe::make(Vocab vocab, std::string_view origin) {
  TIERD_ASSIGN(Normalizer normalizer, Normalizer::make(vocab.normalizers, origin));
  TIERD_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::make(vocab.cuts, LastByteLevel::writes, origin));
  TIERD_ASSIGN(TokenDecoder decoder, TokenDecoder::make(vocab.decoders, origin));
  std::unique_ptr<RankedBpe> made(
      new RankedBpe(std::move(vocab), std::move(normalizer), std::move(pre_tokenizer), std::move(decoder)));
  TIERD_TRY(made->index_tokens(origin));
  std::unordered_map<std::string_view, uint32_t> all;
  for (uint32_t token = 0; token < made->vocab_.pieces.size(); ++token)
    all.emplace(made->vocab_.pieces[token], token);
  TIERD_ASSIGN(made->merges_, merge_table(made->vocab_.merges, all, origin));
  return std::unique_ptr<Tokenizer>(std::move(made));
}

Status RankedBpe::index_tokens(std::string_view origin) {
  std::vector<bool> of_model(vocab_.pieces.size(), true);
  for (const AddedToken& added : vocab_.added_tokens.value_or(std::vector<AddedToken>()))
    of_model[added.token] = added.is_piece;
  for (uint32_t token = 0; token < vocab_.pieces.size(); ++token) {
    const std::string& piece = vocab_.pieces[token];
    if (vocab_.types[token] == TokenType::byte) {
      const int byte = byte_of_piece(piece);
      if (byte < 0 || byte_tokens_[byte] != kNoToken) {
        return Error{Code::corrupt, std::string(origin),
                     fmt::format("byte token {} is \"{}\"; expected each of <0x00> to <0xFF> at most once",
                                 token, piece)};
      }
      byte_tokens_[byte] = token;
    }
    if (of_model[token] && vocab_.types[token] != TokenType::unused) tokens_.emplace(piece, token);
  }
  has_bytes_ = std::ranges::find(byte_tokens_, kNoToken) == byte_tokens_.end();
  user_defined_ = TokenFinders::of(vocab_, false);
  control_and_user_defined_ = TokenFinders::of(vocab_, true);
  return {};
}

std::vector<uint32_t> RankedBpe::encode(std::string_view text, bool add_special, bool parse_special) const {
  std::vector<uint32_t> out = begin_tokens(add_special);
  std::vector<MergeSymbol> symbols;
  const TokenFinders& finders = parse_special ? control_and_user_defined_ : user_defined_;
  const auto add_token = [&](uint32_t token) { out.push_back(token); };
  finders.first.split(
      text,
      [&](std::string_view part) {
        const std::string normalized = normalizer_.apply(part);
        const std::string_view whole = normalized;
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

void RankedBpe::encode_word(std::string_view word, std::vector<MergeSymbol>& symbols,
                            std::vector<uint32_t>& out) const {
  if (vocab_.whole_words_first) {
    if (const auto it = tokens_.find(word); it != tokens_.end()) {
      out.push_back(it->second);
      return;
    }
  }
  symbols.clear();
  append_symbols(word, symbols);
  merge_by_rank(symbols, merges_);
  for (const MergeSymbol& symbol : symbols) {
    if (symbol.bytes > 0) out.push_back(symbol.token);
  }
}

// Appends a symbol for each character: its token, or its bytes', or the unknown token. A character without
// any is left out.
void RankedBpe::append_symbols(std::string_view word, std::vector<MergeSymbol>& symbols) const {
  bool after_unknown = false;
  for (size_t at = 0; at < word.size();) {
    const size_t bytes = std::max<size_t>(utf8_character_bytes(word, at), 1);
    const auto it = tokens_.find(word.substr(at, bytes));
    if (it != tokens_.end()) {
      symbols.push_back({at, bytes, it->second});
    } else if (has_bytes_) {
      for (size_t i = at; i < at + bytes; ++i)
        symbols.push_back({i, 1, byte_tokens_[static_cast<uint8_t>(word[i])]});
    } else if (vocab_.unknown != kNoToken) {
      if (after_unknown && vocab_.fuse_unknown) {
        symbols.back().bytes += bytes;
      } else {
        symbols.push_back({at, bytes, vocab_.unknown});
      }
    }
    after_unknown = it == tokens_.end() && !has_bytes_ && vocab_.unknown != kNoToken;
    at += bytes;
  }
}

bool RankedBpe::is_hidden(uint32_t token, bool special) const {
  return token >= vocab_.pieces.size() || (!special && vocab_.types[token] == TokenType::control);
}

std::string RankedBpe::piece(uint32_t token, bool special) const {
  return is_hidden(token, special) ? std::string() : decoder_.bytes_of(piece_of(token));
}

std::string RankedBpe::decode(const std::vector<uint32_t>& tokens, bool special) const {
  std::vector<std::string> pieces;
  for (const uint32_t token : tokens) {
    if (!is_hidden(token, special)) pieces.push_back(piece_of(token));
  }
  return decoder_.text_of(std::move(pieces));
}

}  // namespace tierd
