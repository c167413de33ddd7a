// The rules by which families of models cut text into words, by the names of GGUF's tokenizer.ggml.pre.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/text/text_step.h"

namespace tierd {

struct PreTokenizerRule {
  std::string_view name;
  // Applied in order, each to the parts that the one before has cut; in Oniguruma's syntax, as the models'
  // tokenizer.json files have them. Text that does not match becomes a word.
  std::array<const char*, 6> expressions;
  bool whole_words_first = false;  // a word that equals a piece becomes that token without merging
  bool begins_with_bos = false;    // unless the file says otherwise
};

// The expression of GPT-2, which the step ByteLevel contains.
extern const char* const kGpt2Expression;

// Returns nullptr for an unknown name. Several converters have named the same rule differently.
const PreTokenizerRule* find_pre_tokenizer_rule(std::string_view name);
// Returns the rule with the same effect as these pre-tokenizer steps of a tokenizer.json; nullptr if there is
// none.
const PreTokenizerRule* find_pre_tokenizer_rule(const std::vector<TextStep>& steps, bool whole_words_first);
// Returns all names, separated by ", ".
std::string pre_tokenizer_names();

}  // namespace tierd
