// A vocabulary as data: read from GGUF metadata, tokenizer.model, tokenizer.json, vocab + merges or
// llama2.c's tokenizer.bin, and kept in the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/text/text_step.h"

namespace tierd {

enum class VocabKind : uint8_t {
  sentencepiece_bpe,  // pieces with scores, "▁" for space, <0xNN> for bytes
  byte_bpe,           // GPT-2's byte alphabet, ranked merges
  ranked_bpe,         // characters, ranked merges, and the steps of a tokenizer.json
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

// A token that is matched as a whole in text, with Hugging Face's rules for it.
struct AddedToken {
  uint32_t token = kNoToken;
  bool normalized = false;    // matched after those that are not, in normalized text
  bool lstrip = false;        // takes the white space before it
  bool rstrip = false;        // takes the white space after it
  bool single_word = false;   // not beside a letter, a digit or the like
  bool is_piece = false;      // merging can also produce it
  std::string found_as = {};  // its text after the normalizers; empty: its piece
  bool operator==(const AddedToken&) const = default;
};

struct Vocab {
  VocabKind kind = VocabKind::sentencepiece_bpe;
  std::string pre_tokenizer =
      "gpt-2";  // byte_bpe: the family's splitting rule, by GGUF's tokenizer.ggml.pre names
  // The steps of a tokenizer.json: of byte_bpe and ranked_bpe before the model (`cuts`, if it is not empty,
  // instead of `pre_tokenizer`), of ranked_bpe after it.
  std::vector<TextStep> normalizers;
  std::vector<TextStep> cuts;
  std::vector<TextStep> decoders;
  bool whole_words_first = false;   // with `cuts`: a word that equals a piece is not merged
  bool fuse_unknown = false;        // ranked_bpe: a run of unknown characters is one token
  std::vector<std::string> pieces;  // as written in the file ("▁the", "Ġthe")
  std::vector<float> scores;        // sentencepiece_bpe; else empty
  std::vector<TokenType> types;     // one for each piece
  std::vector<std::string> merges;  // byte_bpe, ranked_bpe: "left right" by rank
  uint32_t bos = kNoToken;
  uint32_t eos = kNoToken;
  uint32_t unknown = kNoToken;
  std::vector<uint32_t> end_tokens;  // every token that ends a generation, eos included
  bool add_bos = true;
  std::vector<uint32_t> after_bos;  // tokens that follow BOS where it is added
  // sentencepiece_bpe: adds "▁" before the text, and before text that follows a token matched as a whole.
  bool add_space_prefix = true;
  bool prefix_text_only = false;  // only before the whole text
  bool metaspace = false;         // no prefix before a space; tokens are matched before spaces are marked
  bool split_at_spaces = false;   // no piece extends over the space before a word
  // The tokens that are matched as a whole; nothing: all control, unknown and user-defined tokens.
  std::optional<std::vector<AddedToken>> added_tokens;
  std::string chat_template;       // the model's own; empty: none
  std::string tool_chat_template;  // for chats with tools; empty: chat_template
};

// Returns, by token, whether merging can produce it.
std::vector<bool> mergeable_tokens(const Vocab& vocab);

}  // namespace tierd
