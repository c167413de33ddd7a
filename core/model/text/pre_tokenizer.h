// Splits text into the words that byte-level BPE merges, by the regular expressions of a family of models. A
// new family is one row in pre_tokenizer.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

class PreTokenizer {
 public:
  // `name`: a value of GGUF's tokenizer.ggml.pre. Error: unsupported, with the list of known names.
  static Result<PreTokenizer> make(std::string_view name, std::string_view origin);

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Returns words that concatenated equal `text`. A run of bytes that are not UTF-8 is one word. Any thread.
  std::vector<std::string_view> split(std::string_view text) const;

  // Whether a word that equals a piece becomes that token without merging.
  bool whole_words_first() const;

  // Returns the family of a name: several converters have named the same rule differently. Returns a name
  // that is no alias unchanged.
  static std::string_view family_of(std::string_view name);

  // Returns the name for a Hugging Face `pre_tokenizer`, given as its steps joined by '\n': "Split <regex>",
  // "ByteLevel" (splits by GPT-2's expression), "Digits" (splits into single digits). Empty if not known.
  // `whole_words_first`: of rules with this property.
  static std::string_view name_of_steps(std::string_view steps, bool whole_words_first);
  static std::string known_names();

 private:
  struct Rules;
  explicit PreTokenizer(std::unique_ptr<Rules> rules);
  std::unique_ptr<Rules> rules_;
};

}  // namespace tierd
