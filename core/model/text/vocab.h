// A vocabulary as data: what the readers find in GGUF metadata, tokenizer.model, tokenizer.json, vocab +
// merges or llama2.c's tokenizer.bin, and what the store keeps.
#pragma once

#include <cstdint>
#include <optional>
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

// A token that text holds as a whole, as Hugging Face's files describe it.
struct AddedToken {
  uint32_t token = kNoToken;
  bool normalized = false;    // looked for after those that are not, and where normalizers have passed
  bool lstrip = false;        // takes the white space before it
  bool rstrip = false;        // takes the white space after it
  bool single_word = false;   // not beside a letter, a digit or the like
  bool is_piece = false;      // an ordinary piece as well, that merging may make
  std::string found_as = {};  // its text after the normalizers; empty: its piece
  bool operator==(const AddedToken&) const = default;
};

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
  // sentencepiece_bpe: "▁" goes before the text, and before what follows a token that is found as a whole.
  bool add_space_prefix = true;
  bool prefix_text_only = false;  // not before what follows a token
  bool metaspace = false;  // not before what begins with a space; tokens are found before spaces are marked
  bool split_at_spaces = false;  // no piece goes on over the space before a word
  // Exactly these are found as a whole; nothing: all that are control, unknown or user-defined.
  std::optional<std::vector<AddedToken>> added_tokens;
  std::string chat_template;  // the model's own, as its files have it; empty: none
};

// By token: whether text may become it by merging, and not only as a whole.
std::vector<bool> mergeable_tokens(const Vocab& vocab);

}  // namespace tierd
