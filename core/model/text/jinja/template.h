// A chat template in Jinja, as transformers runs it: values only, without access to the host, and bounded in
// steps, depth and bytes.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/model/text/jinja/interpreter.h"

namespace tierd::jinja {

class Template {
 public:
  // Error: invalid_argument or unsupported, with the line as its origin ("line 3").
  static Result<Template> parse(std::string_view source);

  // `variables`: an object. Error: invalid_argument or unsupported, with the line as its origin; empty where
  // a variable itself cannot be a value. Any thread.
  Result<std::string> render(const nlohmann::ordered_json& variables, const Rendering& rendering = {}) const;

 private:
  std::shared_ptr<const Body> body_;
};

}  // namespace tierd::jinja
