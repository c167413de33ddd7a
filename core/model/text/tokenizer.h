// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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
  std::string decode(const std::vector<uint32_t>& tokens, bool special = false) const;

  const Vocab& vocab() const { return vocab_; }

 protected:
  explicit Tokenizer(Vocab vocab) : vocab_(std::move(vocab)) {}
  Vocab vocab_;
};

// Errors: corrupt (duplicate or missing pieces, ids out of range), unsupported (unknown pre-tokenizer, with
// the list of known ones).
Result<std::unique_ptr<Tokenizer>> make_tokenizer(Vocab vocab, std::string_view origin);

}  // namespace tierd
