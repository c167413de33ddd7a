// Turns the pieces of tokens into text by the decoder steps of a tokenizer.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/expression.h"
#include "core/model/text/text_step.h"

namespace tierd {

class TokenDecoder {
 public:
  // Errors: corrupt (a step that is no decoder), unsupported (an expression).
  static Result<TokenDecoder> make(const std::vector<TextStep>& steps, std::string_view origin);

  // Returns the bytes of a whole text. Bytes of byte tokens that are no character remain as they are.
  std::string text_of(std::vector<std::string> pieces) const;
  // Returns the bytes of a piece that is not the first of a text.
  std::string bytes_of(std::string piece) const;

  // Returns whether a space at the beginning of a text is left out.
  bool drops_first_space() const;

 private:
  struct Step {
    TextStep step;
    std::optional<Expression> expression;
  };
  std::vector<Step> steps_;
};

}  // namespace tierd
