#include "core/formats/gguf_vocab.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/formats/tokenizer/turn_ends.h"
#include "core/model/text/pre_tokenizer.h"

namespace tierd {
namespace {

const std::string kPrefix = "tokenizer.ggml.";
constexpr uint64_t kMaxMerges = 1u << 24;
constexpr int64_t kUndefinedType = 0;
constexpr int64_t kLastType = 6;

Status read_types(const File& file, const GgufHeader& header, Vocab& vocab) {
  const std::string key = kPrefix + "token_type";
  TIERD_ASSIGN(const auto types, header.integers(file, key, vocab.pieces.size()));
  vocab.types.assign(vocab.pieces.size(), TokenType::normal);
  if (!header.has(key)) return {};
  if (!header.has_array_of(key, GgufType::i32))
    header.warn(key, "found an array that is not of i32; its values are used");
  if (types.size() != vocab.pieces.size()) {
    return header.error(
        Code::corrupt, key,
        fmt::format("{} types for {} tokens, expected one for each", types.size(), vocab.pieces.size()));
  }
  uint64_t undefined = 0, first = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 0 || types[i] > kLastType) {
      return header.error(Code::corrupt, key,
                          fmt::format("token {} has type {}, known are 0 to {}", i, types[i], kLastType));
    }
    if (types[i] == kUndefinedType) {
      if (undefined++ == 0) first = i;
    } else {
      vocab.types[i] = static_cast<TokenType>(types[i] - 1);
    }
  }
  if (undefined != 0) {
    header.warn(
        key,
        fmt::format("{} tokens, the first of them {}, have type 0 (undefined); they are treated as normal",
                    undefined, first));
  }
  return {};
}

// Returns a special token's id. An id outside the vocabulary becomes "no token" if it is -1, otherwise the
// fallback of a file without the key.
Result<uint32_t> token_id(const GgufHeader& header, const char* name, const Vocab& vocab,
                          uint32_t otherwise) {
  const std::string key = kPrefix + name;
  const uint32_t fallback = otherwise < vocab.pieces.size() ? otherwise : kNoToken;
  if (!header.has(key)) return fallback;
  TIERD_ASSIGN(const int64_t id, header.integer(key));
  if (id >= 0 && static_cast<uint64_t>(id) < vocab.pieces.size()) return static_cast<uint32_t>(id);
  const uint32_t used = id == -1 || id == kNoToken ? kNoToken : fallback;
  header.warn(key, fmt::format("found {}, there are {} tokens; {}", id, vocab.pieces.size(),
                               used == kNoToken ? std::string("the model runs without this token")
                                                : fmt::format("token {} is used", used)));
  return used;
}

Status read_special_tokens(const GgufHeader& header, Vocab& vocab) {
  const bool pieces = vocab.kind == VocabKind::sentencepiece_bpe;
  TIERD_ASSIGN(vocab.bos, token_id(header, "bos_token_id", vocab, pieces ? 1 : kNoToken));
  TIERD_ASSIGN(vocab.eos, token_id(header, "eos_token_id", vocab, pieces ? 2 : kNoToken));
  TIERD_ASSIGN(vocab.unknown, token_id(header, "unknown_token_id", vocab, pieces ? 0 : kNoToken));
  std::vector<uint32_t> ends = {vocab.eos};
  for (const char* name : {"eot_token_id", "eom_token_id"}) {
    TIERD_ASSIGN(const uint32_t end, token_id(header, name, vocab, kNoToken));
    ends.push_back(end);
  }
  for (const uint32_t end : ends) {
    const bool known =
        std::find(vocab.end_tokens.begin(), vocab.end_tokens.end(), end) != vocab.end_tokens.end();
    if (end != kNoToken && !known) vocab.end_tokens.push_back(end);
  }
  add_turn_ends(vocab);
  return {};
}

// Warns of a field that tierd does not follow, and refuses one that would change tokens.
Status check_text_keys(const GgufHeader& header) {
  const std::string end_key = kPrefix + "add_eos_token", space_key = kPrefix + "remove_extra_whitespaces";
  TIERD_ASSIGN(const bool add_eos, header.flag(end_key, false));
  if (add_eos) header.warn(end_key, "true is ignored: EOS is not added to a text that is continued");
  TIERD_ASSIGN(const bool removes, header.flag(space_key, false));
  if (!removes) return {};
  return header.error(Code::unsupported, space_key, "true, supported is false");
}

Status read_sentencepiece(const File& file, const GgufHeader& header, Vocab& vocab) {
  const std::string key = kPrefix + "scores";
  TIERD_ASSIGN(vocab.scores, header.floats(file, key, vocab.pieces.size()));
  if (vocab.scores.size() != vocab.pieces.size()) {
    return header.error(Code::corrupt, key,
                        fmt::format("{} scores for {} tokens, expected one for each", vocab.scores.size(),
                                    vocab.pieces.size()));
  }
  TIERD_ASSIGN(vocab.add_space_prefix, header.flag(kPrefix + "add_space_prefix", true));
  TIERD_ASSIGN(vocab.add_bos, header.flag(kPrefix + "add_bos_token", true));
  return {};
}

Status read_byte_bpe(const File& file, const GgufHeader& header, Vocab& vocab) {
  TIERD_ASSIGN(const std::string pre_tokenizer, header.text(kPrefix + "pre", "default"));
  vocab.pre_tokenizer = PreTokenizer::family_of(pre_tokenizer);
  TIERD_ASSIGN(vocab.merges, header.strings(file, kPrefix + "merges", kMaxMerges));
  if (vocab.merges.empty()) return header.error(Code::corrupt, kPrefix + "merges", "missing or empty");
  // Llama 3's files begin texts with BOS without having the flag.
  TIERD_ASSIGN(vocab.add_bos, header.flag(kPrefix + "add_bos_token", vocab.pre_tokenizer == "llama-bpe"));
  vocab.add_space_prefix = false;
  return {};
}

}  // namespace

Result<std::optional<Vocab>> read_gguf_vocab(const File& file, const GgufHeader& header,
                                             uint32_t vocab_size) {
  const std::string model_key = kPrefix + "model";
  TIERD_ASSIGN(const std::string model, header.text(model_key, "none"));
  if (model == "none" || model == "no_vocab") return std::optional<Vocab>();
  if (model != "llama" && model != "gpt2") {
    return header.error(Code::unsupported, model_key,
                        fmt::format("\"{}\", supported are llama and gpt2", model));
  }

  Vocab vocab;
  vocab.kind = model == "llama" ? VocabKind::sentencepiece_bpe : VocabKind::byte_bpe;
  const std::string tokens_key = kPrefix + "tokens";
  TIERD_ASSIGN(vocab.pieces, header.strings(file, tokens_key, vocab_size));
  if (vocab.pieces.size() != vocab_size) {
    return header.error(Code::corrupt, tokens_key,
                        fmt::format("{} tokens, the embedding has {} rows", vocab.pieces.size(), vocab_size));
  }
  TIERD_TRY(read_types(file, header, vocab));
  TIERD_ASSIGN(vocab.chat_template, header.text("tokenizer.chat_template", ""));
  TIERD_ASSIGN(vocab.tool_chat_template, header.text("tokenizer.chat_template.tool_use", ""));
  TIERD_TRY(read_special_tokens(header, vocab));
  TIERD_TRY(check_text_keys(header));
  if (vocab.kind == VocabKind::sentencepiece_bpe) {
    TIERD_TRY(read_sentencepiece(file, header, vocab));
  } else {
    TIERD_TRY(read_byte_bpe(file, header, vocab));
  }
  return std::optional<Vocab>(std::move(vocab));
}

}  // namespace tierd
