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

  // Ids of `text`. `add_special`: BOS first where the vocabulary asks for it. `parse_special`: control tokens
  // written in the text (such as "</s>") become their ids; otherwise they are ordinary text. Any bytes are
  // accepted; what is not UTF-8 goes by bytes where the vocabulary has them. Any thread.
  virtual std::vector<uint32_t> encode(std::string_view text, bool add_special, bool parse_special) const = 0;

  // The bytes a token stands for, which may be part of a character. Control tokens: empty unless `special`.
  virtual std::string piece(uint32_t token, bool special) const = 0;

  // The whole text. The space that sentencepiece puts before the first word is taken off.
  std::string decode(const std::vector<uint32_t>& tokens, bool special = false) const;

  const Vocab& vocab() const { return vocab_; }

 protected:
  explicit Tokenizer(Vocab vocab) : vocab_(std::move(vocab)) {}
  Vocab vocab_;
};

// Errors: corrupt (duplicate or missing pieces, ids out of range), unsupported (unknown pre-tokenizer, with
// the list).
Result<std::unique_ptr<Tokenizer>> make_tokenizer(Vocab vocab, std::string_view origin);

}  // namespace tierd
