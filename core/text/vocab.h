// A vocabulary as data: what the readers find in GGUF metadata, tokenizer.model, tokenizer.json, vocab +
// merges or llama2.c's tokenizer.bin, and what the store keeps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tierd {

enum class VocabKind : uint8_t {
  sentencepiece_bpe,  // pieces with scores, "▁" for space, <0xNN> for bytes
  byte_bpe,           // GPT-2's byte alphabet, ranked merges
};
enum class TokenType : uint8_t {
  normal,
  unknown,
  control,
  user_defined,
  unused,
  byte
};  // as GGUF, minus one

inline constexpr uint32_t kNoToken = UINT32_MAX;

struct Vocab {
  VocabKind kind = VocabKind::sentencepiece_bpe;
  std::string pre_tokenizer =
      "gpt-2";  // byte_bpe: the family's splitting rule, by GGUF's tokenizer.ggml.pre names
  std::vector<std::string> pieces;  // as the file has them ("▁the", "Ġthe")
  std::vector<float> scores;        // sentencepiece_bpe; else empty
  std::vector<TokenType> types;     // one a piece
  std::vector<std::string> merges;  // byte_bpe: "left right" by rank
  uint32_t bos = kNoToken;
  uint32_t eos = kNoToken;
  uint32_t unknown = kNoToken;
  std::vector<uint32_t> end_tokens;  // every token that ends a generation, eos included
  bool add_bos = true;
  bool add_space_prefix = true;  // sentencepiece_bpe
  std::string chat_template;     // the model's own, as its files have it; empty: none
};

}  // namespace tierd
