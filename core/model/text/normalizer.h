// Applies the normalizers of a tokenizer.json to text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/expression.h"
#include "core/model/text/text_step.h"

namespace tierd {

// Returns the text with `step`'s pattern replaced; `expression` is used if the pattern is one.
std::string with_replaced(std::string_view text, const TextStep& step, const Expression* expression);

class Normalizer {
 public:
  // Errors: corrupt (a step that is no normalizer), unsupported (an expression).
  static Result<Normalizer> make(const std::vector<TextStep>& steps, std::string_view origin);

  bool empty() const { return steps_.empty(); }
  // Returns the text after all steps. Bytes that are not UTF-8 remain, and divide the text. Any thread.
  std::string apply(std::string_view text) const;

 private:
  struct Step {
    TextStep step;
    std::optional<Expression> expression;
  };
  std::string apply_well_formed(std::string_view text) const;
  std::vector<Step> steps_;
};

}  // namespace tierd
