// Converts tokens to text for a terminal or a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/text/text_stream.h"
#include "core/model/text/tokenizer.h"

namespace tierd {

class TerminalText {
 public:
  // The tokenizer must outlive the object. `special`: control tokens are shown. Without stop strings the
  // bytes of tokens are returned at once; with stop strings TextStream holds some back.
  TerminalText(const Tokenizer& tokenizer, bool special, const std::vector<std::string>& stops)
      : tokenizer_(tokenizer), special_(special), raw_(stops.empty()), stream_(stops) {}

  // Returns the bytes that can be shown after `token`.
  std::string add(uint32_t token) {
    const std::string piece = tokenizer_.piece(token, special_);
    if (raw_) return piece;
    return piece.empty() ? add_end(token) : stream_.add(piece);
  }
  // Returns the bytes that can be shown after a token that has no text itself.
  std::string add_end(uint32_t token) {
    return raw_ ? std::string() : stream_.add_hidden(tokenizer_.piece(token, true));
  }
  bool stopped() const { return !stream_.stop().empty(); }
  // Returns the remaining bytes at the end of the text.
  std::string finish() { return stream_.finish(); }

 private:
  const Tokenizer& tokenizer_;
  const bool special_;
  const bool raw_;
  TextStream stream_;
};

}  // namespace tierd
