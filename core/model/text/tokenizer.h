// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Returns the ids of `text`. `add_special`: BOS first if the vocabulary has add_bos. `parse_special`:
  // control tokens written in the text (such as "</s>") become their ids; otherwise they are ordinary text.
  // Any bytes are accepted; bytes that are not UTF-8 become byte tokens if the vocabulary has them. Any
  // thread.
  virtual std::vector<uint32_t> encode(std::string_view text, bool add_special, bool parse_special) const = 0;

  // Returns the bytes of a token, which may be part of a character. Control tokens: empty unless `special`.
  virtual std::string piece(uint32_t token, bool special) const = 0;

  // Returns the whole text, without the space that sentencepiece adds before the first word.
  virtual std::string decode(const std::vector<uint32_t>& tokens, bool special = false) const;

  // Returns whether decode() leaves out a space at the beginning, which encode() has added.
  virtual bool drops_first_space() const = 0;

  const Vocab& vocab() const { return vocab_; }

 protected:
  explicit Tokenizer(Vocab vocab);
  // Returns a token's piece. A token that is matched in normalized text has its normalized text, as in the
  // tokenizers package.
  const std::string& piece_of(uint32_t token) const;
  // Returns the tokens that begin a text if `add_special`.
  std::vector<uint32_t> begin_tokens(bool add_special) const;
  Vocab vocab_;

 private:
  std::unordered_map<uint32_t, std::string> normalized_;  // by token
};

// Errors: corrupt (duplicate or missing pieces, ids out of range), unsupported (unknown pre-tokenizer, with
// the list of known ones).
Result<std::unique_ptr<Tokenizer>> make_tokenizer(Vocab vocab, std::string_view origin);

}  // namespace tierd
