// Reads the parts of a tokenizer.json beside its model: the steps applied to text before it and to tokens
// after it. Each field that changes tokens is followed or refused by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

// Returns nullptr if `object` has no such member, or a null one.
const nlohmann::json* json_member(const nlohmann::json& object, const char* key);
// Returns an empty string if there is no such text.
std::string json_text(const nlohmann::json& object, const char* key);

class TokenizerJsonParts {
 public:
  // `path` is named in errors; both must outlive this object.
  TokenizerJsonParts(const std::string& path, const nlohmann::json& root);

  bool is_byte_level() const;
  // Reads a byte-level pre-tokenizer. `ignore_merges`: words that equal a piece are not merged.
  Status read_byte_level(bool ignore_merges, Vocab& vocab) const;
  // Reads the rule for "▁": normalizers (Prepend and Replace), or a Metaspace pre-tokenizer.
  Status read_space_rule(Vocab& vocab) const;
  // Sets bos and add_bos from a template that begins with a special token.
  Status read_post_processor(Vocab& vocab) const;
  // Refuses decoders that would produce other text from the same tokens.
  Status check_decoder(bool byte_level) const;
  // Warns that lengths for truncation and padding are ignored, because texts are neither cut nor padded.
  void warn_of_lengths() const;

  // Reads a flag of a part; the error for another type names `part`.
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
