#include "core/model/text/tokenizer.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "core/model/text/byte_bpe.h"
#include "core/model/text/ranked_bpe.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {
namespace {

Status check_vocab(const Vocab& vocab, std::string_view origin) {
  const auto corrupt = [&](std::string detail) {
    return Error{Code::corrupt, std::string(origin), std::move(detail)};
  };
  if (vocab.pieces.empty()) return corrupt("the vocabulary has no tokens");
  if (vocab.pieces.size() >= kNoToken)
    return corrupt(fmt::format("{} tokens, more than 32 bits can number", vocab.pieces.size()));
  if (vocab.types.size() != vocab.pieces.size()) {
    return corrupt(fmt::format("{} token types for {} tokens, expected one for each", vocab.types.size(),
                               vocab.pieces.size()));
  }
  std::unordered_map<std::string_view, uint32_t> seen;
  seen.reserve(vocab.pieces.size());
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    const auto [it, added] = seen.emplace(vocab.pieces[token], token);
    if (!added) {
      return corrupt(fmt::format("tokens {} and {} are both \"{}\"", it->second, token, vocab.pieces[token]));
    }
  }
  const auto check_id = [&](const char* what, uint32_t token) -> Status {
    if (token < vocab.pieces.size()) return {};
    return corrupt(
        fmt::format("the {} token is {}, but there are only {} tokens", what, token, vocab.pieces.size()));
  };
  if (vocab.bos != kNoToken) TIERD_TRY(check_id("BOS", vocab.bos));
  if (vocab.eos != kNoToken) TIERD_TRY(check_id("EOS", vocab.eos));
  if (vocab.unknown != kNoToken) TIERD_TRY(check_id("unknown", vocab.unknown));
  for (const uint32_t token : vocab.end_tokens) TIERD_TRY(check_id("end", token));
  for (const uint32_t token : vocab.after_bos) TIERD_TRY(check_id("beginning", token));
  if (vocab.added_tokens) {
    for (const AddedToken& added : *vocab.added_tokens) TIERD_TRY(check_id("added", added.token));
  }
  return {};
}

}  // namespace

Tokenizer::Tokenizer(Vocab vocab) : vocab_(std::move(vocab)) {
  for (const AddedToken& added : vocab_.added_tokens.value_or(std::vector<AddedToken>())) {
    if (!added.found_as.empty()) normalized_.emplace(added.token, added.found_as);
  }
}

const std::string& Tokenizer::piece_of(uint32_t token) const {
  const auto found = normalized_.find(token);
  return found == normalized_.end() ? vocab_.pieces[token] : found->second;
}

std::vector<uint32_t> Tokenizer::begin_tokens(bool add_special) const {
  if (!add_special || !vocab_.add_bos || vocab_.bos == kNoToken) return {};
  std::vector<uint32_t> tokens = {vocab_.bos};
  tokens.insert(tokens.end(), vocab_.after_bos.begin(), vocab_.after_bos.end());
  return tokens;
}

std::string Tokenizer::decode(const std::vector<uint32_t>& tokens, bool special) const {
  std::string text;
  bool first_word = drops_first_space();
  for (const uint32_t token : tokens) {
    const std::string bytes = piece(token, special);
    size_t skip = 0;
    const bool hidden =
        token >= vocab_.pieces.size() || (vocab_.types[token] == TokenType::control && !special);
    if (first_word && !hidden) {
      first_word = false;
      if (piece_of(token).starts_with(kSpaceMark)) skip = 1;
    }
    text.append(bytes, skip);
  }
  return text;
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(Vocab vocab, std::string_view origin) {
  TIERD_TRY(check_vocab(vocab, origin));
  switch (vocab.kind) {
    case VocabKind::sentencepiece_bpe:
      return SentencePieceBpe::make(std::move(vocab), origin);
    case VocabKind::byte_bpe:
      return ByteBpe::make(std::move(vocab), origin);
    case VocabKind::ranked_bpe:
      return RankedBpe::make(std::move(vocab), origin);
  }
  return Error{Code::unsupported, std::string(origin), "unknown kind of vocabulary"};
}

}  // namespace tierd
