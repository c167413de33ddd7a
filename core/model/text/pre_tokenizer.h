// Splits text into the words that byte-level BPE works on, by the regular expressions of a family of models.
// Adding a family is one row in pre_tokenizer.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

class PreTokenizer {
 public:
  // `name`: as GGUF's tokenizer.ggml.pre. Error: unsupported, with the list of those known.
  static Result<PreTokenizer> make(std::string_view name, std::string_view origin);

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Words in order; together they are the whole of `text`. A run of bytes that are not UTF-8 is a word.
  // Any thread.
  std::vector<std::string_view> split(std::string_view text) const;

  // A word that is a piece as a whole is that token, whatever the merges say.
  bool whole_words_first() const;

  // The family that a name stands for: several converters have given a rule names of their own. A name that
  // is no alias comes back as it is.
  static std::string_view family_of(std::string_view name);

  // The name for a Hugging Face `pre_tokenizer`, written as its steps joined by '\n': "Split <regex>",
  // "ByteLevel" (splits by GPT-2's expression), "Digits" (each by itself). Empty when not known.
  // `whole_words_first`: of the rules that look for whole words first.
  static std::string_view name_of_steps(std::string_view steps, bool whole_words_first);
  static std::string known_names();

 private:
  struct Rules;
  explicit PreTokenizer(std::unique_ptr<Rules> rules);
  std::unique_ptr<Rules> rules_;
};

}  // namespace tierd
