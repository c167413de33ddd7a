#include "core/model/text/sentencepiece_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/utf8.h"
#include "core/model/text/merge.h"

namespace tierd {
namespace {

// sentencepiece's text of the unknown token.
constexpr std::string_view kUnknownText = " \u2047 ";

std::string without_space_marks(std::string_view piece) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    if (piece.substr(at, kSpaceMark.size()) == kSpaceMark) {
      out.push_back(' ');
      at += kSpaceMark.size();
    } else {
      out.push_back(piece[at++]);
    }
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string with_space_marks(std::string_view text, bool prefix_space) {
  std::string out;
  out.reserve(text.size() + kSpaceMark.size());
  if (prefix_space) out += kSpaceMark;
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  const int high = hex_digit(piece[3]);
  const int low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Result<std::unique_ptr<Tokenizer>> SentencePieceBpe::make(Vocab vocab, std::string_view origin) {
  std::unique_ptr<SentencePieceBpe> made(new SentencePieceBpe(std::move(vocab)));
  const Vocab& v = made->vocab_;
  const auto count = static_cast<uint32_t>(v.pieces.size());
  if (v.scores.size() != count) {
    return Error{Code::corrupt, std::string(origin),
                 fmt::format("{} scores for {} tokens, expected one for each", v.scores.size(), count)};
  }

  std::vector<uint32_t> by_score(count);
  std::iota(by_score.begin(), by_score.end(), 0u);
  for (uint32_t token = 0; token < count; ++token) {
    if (v.scores[token] != v.scores[token]) {
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("the score of token {} is not a number", token)};
    }
  }
  std::sort(by_score.begin(), by_score.end(),
            [&](uint32_t a, uint32_t b) { return v.scores[a] > v.scores[b]; });
  made->ranks_.resize(count);
  for (uint32_t i = 0, rank = 0; i < count; ++i) {
    if (i > 0 && v.scores[by_score[i]] != v.scores[by_score[i - 1]]) ++rank;
    made->ranks_[by_score[i]] = rank;
  }

  const std::vector<bool> mergeable = mergeable_tokens(v);
  for (uint32_t token = 0; token < count; ++token) {
    const std::string& piece = v.pieces[token];
    if (mergeable[token]) {
      made->tokens_.emplace(piece, token);
      made->longest_piece_ = std::max(made->longest_piece_, piece.size());
    }
    if (v.types[token] != TokenType::byte) continue;
    const int byte = byte_of_piece(piece);
    if (byte < 0 || made->byte_tokens_[byte] != kNoToken) {
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("byte token {} is \"{}\"; expected each of <0x00> to <0xFF> exactly once",
                               token, piece)};
    }
    made->byte_tokens_[byte] = token;
  }
  made->user_defined_ = TokenFinders::of(v, false);
  made->control_and_user_defined_ = TokenFinders::of(v, true);
  made->has_bytes_ =
      std::find(made->byte_tokens_.begin(), made->byte_tokens_.end(), kNoToken) == made->byte_tokens_.end();
  if (!made->has_bytes_ && v.unknown == kNoToken) {
    return Error{
        Code::corrupt, std::string(origin),
        "the vocabulary has neither 256 byte tokens nor an unknown token, so some text would have no tokens"};
  }
  return std::unique_ptr<Tokenizer>(std::move(made));
}

std::vector<uint32_t> SentencePieceBpe::encode(std::string_view text, bool add_special,
                                               bool parse_special) const {
  std::vector<uint32_t> out = begin_tokens(add_special);
  const TokenFinders& finders = parse_special ? control_and_user_defined_ : user_defined_;
  const auto add_token = [&](uint32_t token) { out.push_back(token); };
  const auto add_text = [&](std::string_view part) {
    encode_text(part, part.data() == text.data(), finders, out);
  };
  finders.first.split(
      text,
      [&](std::string_view part) {
        if (vocab_.metaspace) {
          finders.second.split(part, add_text, add_token);
        } else {
          add_text(part);
        }
      },
      add_token);
  return out;
}

bool SentencePieceBpe::gets_prefix(std::string_view text, bool at_start) const {
  if (!vocab_.add_space_prefix || (vocab_.prefix_text_only && !at_start)) return false;
  return !vocab_.metaspace || !(text.starts_with(' ') || text.starts_with(kSpaceMark));
}

void SentencePieceBpe::encode_text(std::string_view text, bool at_start, const TokenFinders& finders,
                                   std::vector<uint32_t>& out) const {
  const std::string marked = with_space_marks(text, gets_prefix(text, at_start));
  if (vocab_.metaspace) return encode_marked(marked, out);
  finders.second.split(
      marked, [&](std::string_view part) { encode_marked(part, out); },
      [&](uint32_t token) { out.push_back(token); });
}

void SentencePieceBpe::encode_marked(std::string_view marked, std::vector<uint32_t>& out) const {
  if (!vocab_.split_at_spaces) return encode_word(marked, out);
  for (size_t begin = 0; begin < marked.size();) {
    const size_t end = std::min(marked.find(kSpaceMark, begin + 1), marked.size());
    encode_word(marked.substr(begin, end - begin), out);
    begin = end;
  }
}

void SentencePieceBpe::encode_word(std::string_view all, std::vector<uint32_t>& out) const {
  std::vector<MergeSymbol> symbols;
  for (size_t at = 0; at < all.size();) {
    const size_t bytes = std::max<size_t>(utf8_character_bytes(all, at), 1);
    symbols.push_back({at, bytes, kNoToken});
    at += bytes;
  }

  // Unused pieces take part in merging and are split again afterwards; this map has the split of each.
  std::unordered_map<std::string_view, size_t> left_bytes_of_unused;
  merge_symbols(symbols, [&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merged> {
    const size_t bytes = left.bytes + right.bytes;
    if (bytes > longest_piece_) return std::nullopt;
    const auto it = tokens_.find(all.substr(left.begin, bytes));
    if (it == tokens_.end()) return std::nullopt;
    if (vocab_.types[it->second] == TokenType::unused) left_bytes_of_unused[it->first] = left.bytes;
    return Merged{ranks_[it->second], it->second};
  });

  const size_t first = out.size();
  std::vector<std::string_view> pending;
  for (const MergeSymbol& symbol : symbols) {
    if (symbol.bytes == 0) continue;
    pending.assign(1, all.substr(symbol.begin, symbol.bytes));
    while (!pending.empty()) {
      const std::string_view part = pending.back();
      pending.pop_back();
      const auto unused = left_bytes_of_unused.find(part);
      if (unused == left_bytes_of_unused.end()) {
        append(part, first, out);
      } else {
        pending.push_back(part.substr(unused->second));
        pending.push_back(part.substr(0, unused->second));
      }
    }
  }
}

void SentencePieceBpe::append(std::string_view piece, size_t first, std::vector<uint32_t>& out) const {
  if (const auto it = tokens_.find(piece); it != tokens_.end()) {
    out.push_back(it->second);
  } else if (has_bytes_) {
    for (const char byte : piece) out.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
  } else if (out.size() == first ||
             out.back() != vocab_.unknown) {  // a run of unknown characters is one token
    out.push_back(vocab_.unknown);
  }
}

std::string SentencePieceBpe::piece(uint32_t token, bool special) const {
  if (token >= vocab_.pieces.size()) return {};
  const std::string& piece = piece_of(token);
  switch (vocab_.types[token]) {
    case TokenType::control:
      return special ? without_space_marks(piece) : std::string();
    case TokenType::unknown:
      return std::string(kUnknownText);
    case TokenType::byte:
      return std::string(1, static_cast<char>(byte_of_piece(piece)));
    case TokenType::normal:
    case TokenType::user_defined:
    case TokenType::unused:
      break;
  }
  return without_space_marks(piece);
}

}  // namespace tierd
