// Reads the parts of a tokenizer.json that are beside its model and its steps.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

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
  TokenizerJsonParts(const std::string& path, const nlohmann::json& root) : path_(path), root_(root) {}

  // Sets bos, after_bos and add_bos from a template that begins with special tokens.
  Status read_post_processor(Vocab& vocab) const;
  // Prints a line for each field that has no effect: lengths, because texts are neither cut nor padded, and
  // fields that no version of the format has.
  void warn_of_ignored_fields() const;

  // Reads a flag of a part; the error for another type names `part`.
  Result<bool> flag(const nlohmann::json& object, const char* key, bool otherwise,
                    const std::string& part) const;
  Error fail(Code code, std::string detail) const { return Error{code, path_, std::move(detail)}; }

 private:
  Status read_template(const nlohmann::json& step, Vocab& vocab) const;
  Result<uint32_t> template_token(const nlohmann::json& step, const std::string& name,
                                  const Vocab& vocab) const;

  const std::string& path_;
  const nlohmann::json& root_;
};

}  // namespace tierd
