// The parts of a tokenizer.json beside its model: what it does to text before, and to tokens after. Each
// field that changes tokens is obeyed or refused by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// nullptr where `object` has no such member, or null.
const nlohmann::json* json_member(const nlohmann::json& object, const char* key);
// Empty where there is no such text.
std::string json_text(const nlohmann::json& object, const char* key);

class TokenizerJsonParts {
 public:
  // `path` is named in errors; both outlive this.
  TokenizerJsonParts(const std::string& path, const nlohmann::json& root);

  bool is_byte_level() const;
  // The pre-tokenizer of a byte-level vocabulary. `ignore_merges`: whole words are looked for first.
  Status read_byte_level(bool ignore_merges, Vocab& vocab) const;
  // Where spaces become "▁": by normalizers (Prepend and Replace), or by a Metaspace pre-tokenizer.
  Status read_space_rule(Vocab& vocab) const;
  // A template that begins with a special token is how tokenizer.json asks for BOS: sets bos and add_bos.
  Status read_post_processor(Vocab& vocab) const;
  // Decoders of other kinds would make other text of the same tokens.
  Status check_decoder(bool byte_level) const;
  // Lengths that text is cut or filled to, which a program asks for and a file cannot.
  void warn_of_lengths() const;

  // A flag of a part; `part` is named in the error where it is of another type.
  Result<bool> flag(const nlohmann::json& object, const char* key, bool otherwise,
                    const std::string& part) const;
  Error fail(Code code, std::string detail) const { return Error{code, path_, std::move(detail)}; }

 private:
  Status read_metaspace(const nlohmann::json& step, Vocab& vocab) const;
  Status read_template(const nlohmann::json& step, Vocab& vocab) const;
  Result<std::string> byte_level_step(const nlohmann::json& step) const;

  const std::string& path_;
  const nlohmann::json& root_;
  std::vector<const nlohmann::json*> normalizers_;
  std::vector<const nlohmann::json*> pre_tokenizers_;
};

}  // namespace tierd
