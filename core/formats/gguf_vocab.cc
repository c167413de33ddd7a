#include "core/formats/gguf_vocab.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "core/base/utf8.h"
#include "core/formats/tokenizer/turn_ends.h"
#include "core/model/text/pre_tokenizer_rules.h"

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
  for (const char* name :
       {"eot_token_id", "eom_token_id", "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"}) {
    TIERD_ASSIGN(const uint32_t end, token_id(header, name, vocab, kNoToken));
    ends.push_back(end);
  }
  for (const uint32_t end : ends) {
    const bool known =
        std::find(vocab.end_tokens.begin(), vocab.end_tokens.end(), end) != vocab.end_tokens.end();
    if (end != kNoToken && !known) vocab.end_tokens.push_back(end);
  }
  add_turn_ends(OrdinaryEnds::become_control, vocab);
  return {};
}

// The keys that this file reads, and those of tokens for which tierd has no use.
constexpr std::array<std::string_view, 34> kKnownKeys = {"model",
                                                         "pre",
                                                         "tokens",
                                                         "scores",
                                                         "token_type",
                                                         "merges",
                                                         "bos_token_id",
                                                         "eos_token_id",
                                                         "eot_token_id",
                                                         "eom_token_id",
                                                         "unknown_token_id",
                                                         "add_bos_token",
                                                         "add_eos_token",
                                                         "add_sep_token",
                                                         "add_space_prefix",
                                                         "remove_extra_whitespaces",
                                                         "precompiled_charsmap",
                                                         "suppress_tokens",
                                                         "normalizer.lowercase",
                                                         "normalizer.strip_accents",
                                                         "token_type_count",
                                                         "seperator_token_id",
                                                         "padding_token_id",
                                                         "mask_token_id",
                                                         "cls_token_id",
                                                         "prefix_token_id",
                                                         "suffix_token_id",
                                                         "middle_token_id",
                                                         "fim_pre_token_id",
                                                         "fim_suf_token_id",
                                                         "fim_mid_token_id",
                                                         "fim_pad_token_id",
                                                         "fim_rep_token_id",
                                                         "fim_sep_token_id"};

// Warns of fields that have no effect, and refuses those that would change tokens.
Status check_text_keys(const File& file, const GgufHeader& header) {
  for (const char* name : {"add_eos_token", "add_sep_token"}) {
    TIERD_ASSIGN(const bool adds, header.flag(kPrefix + name, false));
    if (adds) header.warn(kPrefix + name, "true is ignored: no token is added to a text that is continued");
  }
  for (const char* name : {"remove_extra_whitespaces", "normalizer.lowercase", "normalizer.strip_accents"}) {
    TIERD_ASSIGN(const bool changes, header.flag(kPrefix + name, false));
    if (changes) return header.error(Code::unsupported, kPrefix + name, "true, supported is false");
  }
  for (const char* name : {"precompiled_charsmap", "suppress_tokens"}) {
    TIERD_ASSIGN(const auto values, header.integers(file, kPrefix + name, kMaxMerges));
    if (!values.empty())
      return header.error(Code::unsupported, kPrefix + name,
                          fmt::format("{} values, supported is an empty list", values.size()));
  }
  for (const std::string& key : header.keys(kPrefix)) {
    if (std::ranges::find(kKnownKeys, std::string_view(key).substr(kPrefix.size())) == kKnownKeys.end())
      header.warn(key, "an unknown key, which has no effect");
  }
  return {};
}

// Gives tokens without text a name, because each text must be one token's alone.
void name_empty_tokens(const GgufHeader& header, Vocab& vocab) {
  uint64_t count = 0;
  for (size_t token = 0; token < vocab.pieces.size(); ++token) {
    if (!vocab.pieces[token].empty()) continue;
    vocab.pieces[token] = fmt::format("[EMPTY_{}]", token);
    vocab.types[token] = TokenType::unused;
    ++count;
  }
  if (count != 0)
    header.warn(kPrefix + "tokens", fmt::format("{} tokens have no text; no text becomes them", count));
}

// Phi-3's tokenizer.json lets its special tokens take the white space after them; GGUF has no key for it.
void take_spaces_after_tokens(Vocab& vocab) {
  constexpr std::array<std::string_view, 3> kOthers = {"<unk>", "<s>", "<|endoftext|>"};
  std::vector<AddedToken>& added = vocab.added_tokens.emplace();
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    const TokenType type = vocab.types[token];
    if (type != TokenType::control && type != TokenType::user_defined && type != TokenType::unknown) continue;
    const bool takes = std::ranges::find(kOthers, vocab.pieces[token]) == kOthers.end();
    added.push_back({.token = token, .rstrip = takes});
  }
}

Status read_sentencepiece(const File& file, const GgufHeader& header, Vocab& vocab) {
  const std::string key = kPrefix + "scores";
  TIERD_ASSIGN(vocab.scores, header.floats(file, key, vocab.pieces.size()));
  if (vocab.scores.size() != vocab.pieces.size()) {
    return header.error(Code::corrupt, key,
                        fmt::format("{} scores for {} tokens, expected one for each", vocab.scores.size(),
                                    vocab.pieces.size()));
  }
  TIERD_ASSIGN(const std::string architecture, header.text("general.architecture", ""));
  if (architecture == "phi3") take_spaces_after_tokens(vocab);
  TIERD_ASSIGN(vocab.add_space_prefix, header.flag(kPrefix + "add_space_prefix", true));
  TIERD_ASSIGN(vocab.add_bos, header.flag(kPrefix + "add_bos_token", true));
  return {};
}

Status read_byte_bpe(const File& file, const GgufHeader& header, Vocab& vocab) {
  const std::string pre_key = kPrefix + "pre";
  TIERD_ASSIGN(const std::string pre_tokenizer, header.text(pre_key, ""));
  const PreTokenizerRule* const rule = find_pre_tokenizer_rule(pre_tokenizer);
  if (rule == nullptr) {
    return header.error(
        Code::unsupported, pre_key,
        fmt::format("{}; known are {}; --tokenizer FILE uses the model's own tokenizer.json",
                    pre_tokenizer.empty() ? std::string("missing")
                                          : fmt::format("unknown rule \"{}\"", shown(pre_tokenizer)),
                    pre_tokenizer_names()));
  }
  vocab.pre_tokenizer = rule->name;
  TIERD_ASSIGN(vocab.merges, header.strings(file, kPrefix + "merges", kMaxMerges));
  if (vocab.merges.empty()) return header.error(Code::corrupt, kPrefix + "merges", "missing or empty");
  TIERD_ASSIGN(const bool prefix, header.flag(kPrefix + "add_space_prefix", false));
  if (prefix)
    header.warn(kPrefix + "add_space_prefix", "true has no effect: a byte-level vocabulary has no prefix");
  // Files of some families begin texts with BOS without having the flag.
  TIERD_ASSIGN(vocab.add_bos, header.flag(kPrefix + "add_bos_token", rule->begins_with_bos));
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
                        fmt::format("\"{}\", supported are llama and gpt2; --tokenizer FILE uses the model's "
                                    "own tokenizer.json",
                                    shown(model)));
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
  name_empty_tokens(header, vocab);
  TIERD_ASSIGN(vocab.chat_template, header.text("tokenizer.chat_template", ""));
  TIERD_ASSIGN(vocab.tool_chat_template, header.text("tokenizer.chat_template.tool_use", ""));
  TIERD_TRY(read_special_tokens(header, vocab));
  TIERD_TRY(check_text_keys(file, header));
  if (vocab.kind == VocabKind::sentencepiece_bpe) {
    TIERD_TRY(read_sentencepiece(file, header, vocab));
  } else {
    TIERD_TRY(read_byte_bpe(file, header, vocab));
  }
  return std::optional<Vocab>(std::move(vocab));
}

}  // namespace tierd
