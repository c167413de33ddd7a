#include "core/formats/tokenizer/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/utf8.h"
#include "core/formats/tokenizer/tokenizer_json_parts.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {
namespace {

using nlohmann::json;

// The largest gap of ids: one wrong id must not fill the memory with padding.
constexpr uint64_t kMostGaps = 1024;

struct Origin {
  const std::string& file;
  std::string key;
  Error corrupt(std::string detail) const {
    return {Code::corrupt, file, fmt::format("{}: {}", key, std::move(detail))};
  }
};

// Lists the tokens that are matched as a whole in a vocabulary without a list, by their types.
std::vector<AddedToken> tokens_by_type(const Vocab& vocab) {
  std::vector<AddedToken> tokens;
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    const TokenType type = vocab.types[token];
    const bool own = type == TokenType::user_defined;
    if (!own && type != TokenType::control && type != TokenType::unknown) continue;
    tokens.push_back({.token = token, .normalized = own && vocab.kind == VocabKind::sentencepiece_bpe});
  }
  return tokens;
}

AddedToken& listed(uint32_t token, Vocab& vocab) {
  if (!vocab.added_tokens) vocab.added_tokens = tokens_by_type(vocab);
  const auto found = std::ranges::find(*vocab.added_tokens, token, &AddedToken::token);
  if (found != vocab.added_tokens->end()) return *found;
  return vocab.added_tokens->emplace_back(AddedToken{.token = token});
}

void append(Vocab& vocab, std::string piece, TokenType type) {
  vocab.pieces.push_back(std::move(piece));
  vocab.types.push_back(type);
  if (!vocab.scores.empty()) vocab.scores.push_back(0);
}

// Makes the vocabulary have `content` at `id`, which may be beyond its end.
Status make_room(uint64_t id, const std::string& content, const Origin& origin, Vocab& vocab) {
  const auto same = std::ranges::find(vocab.pieces, content);
  const auto at = static_cast<uint64_t>(same - vocab.pieces.begin());
  if (same != vocab.pieces.end() && at != id)
    return origin.corrupt(
        fmt::format("\"{}\" has id {}, but id {} in the vocabulary", shown(content), id, at));
  if (id >= vocab.pieces.size() + kMostGaps) {
    return origin.corrupt(fmt::format("\"{}\" has id {}, far beyond the {} tokens of the vocabulary",
                                      shown(content), id, vocab.pieces.size()));
  }
  while (vocab.pieces.size() < id)
    append(vocab, fmt::format("[PAD{}]", vocab.pieces.size()), TokenType::unused);
  if (vocab.pieces.size() == id) {
    append(vocab, content, TokenType::user_defined);
  } else if (vocab.types[id] == TokenType::unused) {
    vocab.pieces[id] = content;
  } else if (vocab.pieces[id] != content) {
    return origin.corrupt(fmt::format("\"{}\" has id {}, which is the id of \"{}\"", shown(content), id,
                                      shown(vocab.pieces[id])));
  }
  return {};
}

Status add_token(uint64_t id, const std::string& content, AddedToken rules, bool special,
                 const Origin& origin, Vocab& vocab) {
  if (content.empty()) return {};
  const bool known = id < vocab.pieces.size();
  const bool was_piece = known && vocab.types[id] == TokenType::normal;
  TIERD_TRY(make_room(id, content, origin, vocab));
  const auto token = static_cast<uint32_t>(id);
  AddedToken& added = listed(token, vocab);
  rules.token = token;
  rules.is_piece = was_piece || added.is_piece;
  if (rules.normalized && !vocab.metaspace && vocab.kind == VocabKind::sentencepiece_bpe)
    rules.found_as = with_space_marks(content, vocab.add_space_prefix);
  added = rules;
  if (vocab.types[token] != TokenType::unknown)
    vocab.types[token] = special ? TokenType::control : TokenType::user_defined;
  return {};
}

Result<bool> flag(const json& token, const char* key, const Origin& origin) {
  const json* value = json_member(token, key);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  return origin.corrupt(fmt::format("{}: expected true or false, found {}", key, value->type_name()));
}

}  // namespace

Status add_listed_tokens(const json& root, const std::string& file, Vocab& vocab) {
  // Sorted by id, so that each token is appended after those before it.
  std::vector<std::pair<uint64_t, std::string>> tokens;
  for (const auto& [content, id] : root.items()) {
    const Origin origin{file, fmt::format("\"{}\"", shown(content))};
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kNoToken)
      return origin.corrupt(fmt::format("expected a token's id, found {}", shown(id.dump(-1, ' ', true))));
    tokens.emplace_back(id.get<uint64_t>(), content);
  }
  std::ranges::sort(tokens);
  for (const auto& [id, content] : tokens) {
    const bool known = id < vocab.pieces.size() && vocab.pieces[id] == content;
    if (known && vocab.types[id] != TokenType::normal) continue;  // described by its own file
    TIERD_TRY(add_token(id, content, {}, false, {file, fmt::format("\"{}\"", shown(content))}, vocab));
  }
  return {};
}

Status add_decoder_tokens(const json& config, const std::string& file, bool piped, Vocab& vocab) {
  const json* decoder = json_member(config, "added_tokens_decoder");
  if (decoder == nullptr) return {};
  const Origin whole{file, "added_tokens_decoder"};
  if (!decoder->is_object()) return whole.corrupt("expected an object whose keys are token ids");
  std::vector<std::pair<uint64_t, const json*>> tokens;
  for (const auto& [key, token] : decoder->items()) {
    uint32_t id = 0;
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (failed != std::errc() || end != key.data() + key.size() || id == kNoToken)
      return whole.corrupt(fmt::format("\"{}\" is not a token's id; expected a whole number", shown(key)));
    tokens.emplace_back(id, &token);
  }
  std::ranges::sort(tokens);
  for (const auto& [id, token] : tokens) {
    const Origin origin{file, fmt::format("added_tokens_decoder.{}", id)};
    const std::string content = json_text(*token, "content");
    if (content.empty()) return origin.corrupt("content: expected the token's text");
    AddedToken rules;
    TIERD_ASSIGN(const bool special, flag(*token, "special", origin));
    TIERD_ASSIGN(const bool normalized, flag(*token, "normalized", origin));
    rules.normalized = normalized && piped;
    TIERD_ASSIGN(rules.lstrip, flag(*token, "lstrip", origin));
    TIERD_ASSIGN(rules.rstrip, flag(*token, "rstrip", origin));
    TIERD_ASSIGN(rules.single_word, flag(*token, "single_word", origin));
    TIERD_TRY(add_token(id, content, rules, special, origin, vocab));
  }
  return {};
}

void make_control(uint32_t token, Vocab& vocab) {
  if (vocab.types[token] == TokenType::control || vocab.types[token] == TokenType::unknown) return;
  vocab.types[token] = TokenType::control;
  if (vocab.added_tokens) listed(token, vocab);
}

}  // namespace tierd
