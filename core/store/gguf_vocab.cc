#include "core/store/gguf_vocab.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace tierd {
namespace {

const std::string kPrefix = "tokenizer.ggml.";
constexpr uint64_t kMaxMerges = 1u << 24;

// Control tokens that end a turn in the families read here; not every file names them by key.
constexpr std::array<std::string_view, 6> kTurnEnds = {"<|eot_id|>", "<|eom_id|>",      "<|im_end|>",
                                                       "<|end|>",    "<|end_of_text|>", "<|endoftext|>"};

Status read_types(const File& file, const GgufHeader& header, Vocab& vocab) {
  const std::string key = kPrefix + "token_type";
  TIERD_ASSIGN(const auto types, header.integers(file, key, vocab.pieces.size()));
  vocab.types.assign(vocab.pieces.size(), TokenType::normal);
  if (!header.has(key)) return {};
  if (types.size() != vocab.pieces.size()) {
    return header.error(Code::corrupt, key,
                        fmt::format("{} types for {} tokens", types.size(), vocab.pieces.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 1 || types[i] > 6) {
      return header.error(Code::corrupt, key,
                          fmt::format("token {} has type {}, known are 1 to 6", i, types[i]));
    }
    vocab.types[i] = static_cast<TokenType>(types[i] - 1);
  }
  return {};
}

Result<uint32_t> token_id(const GgufHeader& header, const char* name, const Vocab& vocab, uint32_t fallback) {
  const std::string key = kPrefix + name;
  if (!header.has(key)) return fallback < vocab.pieces.size() ? fallback : kNoToken;
  TIERD_ASSIGN(const uint32_t id, header.u32(key));
  // Some writers say "none" so.
  if (id == UINT32_MAX) return kNoToken;
  if (id < vocab.pieces.size()) return id;
  return header.error(Code::corrupt, key,
                      fmt::format("found {}, there are {} tokens", id, vocab.pieces.size()));
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
  for (uint32_t token = 0; token < vocab.pieces.size(); ++token) {
    const bool turn_end =
        std::find(kTurnEnds.begin(), kTurnEnds.end(), vocab.pieces[token]) != kTurnEnds.end();
    if (turn_end && vocab.types[token] == TokenType::control) ends.push_back(token);
  }
  for (const uint32_t end : ends) {
    const bool known =
        std::find(vocab.end_tokens.begin(), vocab.end_tokens.end(), end) != vocab.end_tokens.end();
    if (end != kNoToken && !known) vocab.end_tokens.push_back(end);
  }
  return {};
}

Status read_sentencepiece(const File& file, const GgufHeader& header, Vocab& vocab) {
  const std::string key = kPrefix + "scores";
  TIERD_ASSIGN(vocab.scores, header.floats(file, key, vocab.pieces.size()));
  if (vocab.scores.size() != vocab.pieces.size()) {
    return header.error(Code::corrupt, key,
                        fmt::format("{} scores for {} tokens", vocab.scores.size(), vocab.pieces.size()));
  }
  TIERD_ASSIGN(vocab.add_space_prefix, header.flag(kPrefix + "add_space_prefix", true));
  TIERD_ASSIGN(vocab.add_bos, header.flag(kPrefix + "add_bos_token", true));
  return {};
}

Status read_byte_bpe(const File& file, const GgufHeader& header, Vocab& vocab) {
  TIERD_ASSIGN(vocab.pre_tokenizer, header.text(kPrefix + "pre", "default"));
  TIERD_ASSIGN(vocab.merges, header.strings(file, kPrefix + "merges", kMaxMerges));
  if (vocab.merges.empty()) return header.error(Code::corrupt, kPrefix + "merges", "missing or empty");
  // Llama 3's files begin texts with BOS without saying so.
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
  TIERD_TRY(read_special_tokens(header, vocab));
  if (vocab.kind == VocabKind::sentencepiece_bpe) {
    TIERD_TRY(read_sentencepiece(file, header, vocab));
  } else {
    TIERD_TRY(read_byte_bpe(file, header, vocab));
  }
  return std::optional<Vocab>(std::move(vocab));
}

}  // namespace tierd
