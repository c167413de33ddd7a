// Reads the steps of a tokenizer.json: normalizers, pre-tokenizers and decoders. Each field of a step is
// obeyed, or the step is refused with the field's name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/text_step.h"

namespace tierd {

class TokenizerJsonSteps {
 public:
  // `path` is named in errors; both must outlive this object.
  TokenizerJsonSteps(const std::string& path, const nlohmann::json& root) : path_(path), root_(root) {}

  Result<std::vector<TextStep>> normalizers() const;
  Result<std::vector<TextStep>> pre_tokenizers() const;
  Result<std::vector<TextStep>> decoders() const;

 private:
  struct Part;  // a step in the file
  using Reader = Result<TextStep> (*)(const Part&);
  struct Known {
    std::string_view type;
    Reader read;
  };
  Result<std::vector<TextStep>> read(const char* key, const char* list_key,
                                     const std::vector<Known>& known) const;
  Status check_size(const char* key, const std::vector<TextStep>& steps) const;

  const std::string& path_;
  const nlohmann::json& root_;
};

}  // namespace tierd
