#include "core/model/text/tokenizer.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "core/model/text/byte_bpe.h"
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
  if (vocab.added_tokens) {
    for (const AddedToken& added : *vocab.added_tokens) TIERD_TRY(check_id("added", added.token));
  }
  return {};
}

}  // namespace

std::string Tokenizer::decode(const std::vector<uint32_t>& tokens, bool special) const {
  std::string text;
  bool first_word = vocab_.kind == VocabKind::sentencepiece_bpe && vocab_.add_space_prefix;
  for (const uint32_t token : tokens) {
    const std::string bytes = piece(token, special);
    size_t skip = 0;
    if (first_word && token < vocab_.pieces.size() && vocab_.types[token] != TokenType::control) {
      first_word = false;
      if (vocab_.pieces[token].starts_with(kSpaceMark)) skip = 1;
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
  }
  return Error{Code::unsupported, std::string(origin), "unknown kind of vocabulary"};
}

}  // namespace tierd
