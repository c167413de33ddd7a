// SentencePiece's BPE: characters are merged in the order of the scores of the resulting pieces.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/text/token_finder.h"
#include "core/model/text/tokenizer.h"

namespace tierd {

inline constexpr std::string_view kSpaceMark = "\u2581";  // "▁", which is written for a space in pieces

// Returns the text with "▁" for each space, and with one more at the beginning if `prefix_space`.
std::string with_space_marks(std::string_view text, bool prefix_space);

// Returns the byte of a piece such as "<0x0A>", or -1.
int byte_of_piece(std::string_view piece);

class SentencePieceBpe final : public Tokenizer {
 public:
  // `vocab` must have passed the checks of make_tokenizer.
  static Result<std::unique_ptr<Tokenizer>> make(Vocab vocab, std::string_view origin);

  std::vector<uint32_t> encode(std::string_view text, bool add_special, bool parse_special) const override;
  std::string piece(uint32_t token, bool special) const override;
  bool drops_first_space() const override { return vocab_.add_space_prefix; }

 private:
  explicit SentencePieceBpe(Vocab vocab) : Tokenizer(std::move(vocab)) { byte_tokens_.fill(kNoToken); }

  // Encodes text between tokens that are matched before spaces are marked. `at_start`: the beginning of
  // `text` is that of the whole text.
  void encode_text(std::string_view text, bool at_start, const TokenFinders& finders,
                   std::vector<uint32_t>& out) const;
  // Encodes marked text that contains no token matched as a whole.
  void encode_marked(std::string_view marked, std::vector<uint32_t>& out) const;
  void encode_word(std::string_view word, std::vector<uint32_t>& out) const;
  bool gets_prefix(std::string_view text, bool at_start) const;
  // Appends the token of `piece`, or its byte tokens, or the unknown token; `first` is the position in `out`
  // of this text's first token.
  void append(std::string_view piece, size_t first, std::vector<uint32_t>& out) const;

  std::unordered_map<std::string_view, uint32_t>
      tokens_;                   // of pieces that merging can produce; keys point into vocab_
  std::vector<uint32_t> ranks_;  // by token: 0 is the highest score
  std::array<uint32_t, 256> byte_tokens_;
  bool has_bytes_ = false;
  size_t longest_piece_ = 0;
  TokenFinders user_defined_;
  TokenFinders control_and_user_defined_;
};

}  // namespace tierd
