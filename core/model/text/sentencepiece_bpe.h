// SentencePiece's BPE: characters are merged in the order of the scores of the pieces they make.
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

inline constexpr std::string_view kSpaceMark = "\u2581";  // "▁", which stands for a space in pieces

// The text with "▁" for each space, and with one more in front where `prefix_space`.
std::string with_space_marks(std::string_view text, bool prefix_space);

// The byte that a piece such as "<0x0A>" stands for, or -1.
int byte_of_piece(std::string_view piece);

class SentencePieceBpe final : public Tokenizer {
 public:
  // `vocab` has passed the checks of make_tokenizer.
  static Result<std::unique_ptr<Tokenizer>> make(Vocab vocab, std::string_view origin);

  std::vector<uint32_t> encode(std::string_view text, bool add_special, bool parse_special) const override;
  std::string piece(uint32_t token, bool special) const override;

 private:
  explicit SentencePieceBpe(Vocab vocab) : Tokenizer(std::move(vocab)) { byte_tokens_.fill(kNoToken); }

  // Text between tokens that are found before spaces are marked. `at_start`: the text as a whole begins here.
  void encode_text(std::string_view text, bool at_start, const TokenFinders& finders,
                   std::vector<uint32_t>& out) const;
  // Marked text in which no token is found as a whole.
  void encode_marked(std::string_view marked, std::vector<uint32_t>& out) const;
  void encode_word(std::string_view word, std::vector<uint32_t>& out) const;
  bool gets_prefix(std::string_view text, bool at_start) const;
  // Adds the token of `piece`, or what stands for it; `first` is where this text's tokens begin in `out`.
  void append(std::string_view piece, size_t first, std::vector<uint32_t>& out) const;

  std::unordered_map<std::string_view, uint32_t>
      tokens_;                   // of pieces that text may become; keys lie in vocab_
  std::vector<uint32_t> ranks_;  // by token: 0 is the highest score
  std::array<uint32_t, 256> byte_tokens_;
  bool has_bytes_ = false;
  size_t longest_piece_ = 0;
  TokenFinders user_defined_;
  TokenFinders control_and_user_defined_;
};

}  // namespace tierd
