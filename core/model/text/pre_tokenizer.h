// Cuts text into the words that byte-level and ranked BPE merge: by the rule of a family of models
// (pre_tokenizer_rules.h), or by the pre-tokenizer steps of a tokenizer.json.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/digit_groups.h"
#include "core/model/text/expression.h"
#include "core/model/text/text_step.h"

namespace tierd {

// The treatment of a ByteLevel step that is the last: it writes bytes as characters of the byte alphabet, or
// only cuts.
enum class LastByteLevel : uint8_t { writes, only_cuts };

class PreTokenizer {
 public:
  // Words, and the texts that steps have written for them. Words of no step point into the text.
  struct Words {
    std::vector<std::string_view> words;
    std::deque<std::string> written;

    auto begin() const { return words.begin(); }
    auto end() const { return words.end(); }
  };

  // `name`: a value of GGUF's tokenizer.ggml.pre. Error: unsupported, with the list of known names.
  static Result<PreTokenizer> make(std::string_view name, std::string_view origin);
  // Errors: corrupt (a step that cuts no text), unsupported (an expression).
  static Result<PreTokenizer> make(const std::vector<TextStep>& steps, LastByteLevel last,
                                   std::string_view origin);

  // Returns the words in order. With a rule they concatenate to `text`. A run of bytes that are not UTF-8 is
  // one word. `at_start`: the text begins the whole text. Any thread.
  Words split(std::string_view text, bool at_start = true) const;

 private:
  struct Cut {
    TextStep step;
    std::optional<Expression> expression = std::nullopt;
    std::optional<DigitGroups> digit_groups = std::nullopt;  // instead of the expression
    bool writes_bytes = false;
  };
  struct Word {
    std::string_view text;
    bool at_start = false;
  };
  static Result<Cut> compile(const TextStep& step, std::string_view origin);
  static void cut(const Cut& by, const Word& word, std::vector<Word>& out, std::deque<std::string>& written);

  std::vector<Cut> cuts_;
};

}  // namespace tierd
