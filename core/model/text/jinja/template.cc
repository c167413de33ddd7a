#include "core/model/text/jinja/template.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/model/text/jinja/json_text.h"
#include "core/model/text/jinja/parser.h"

namespace tierd::jinja {
namespace {

constexpr size_t kLargestTemplate = size_t{1} << 20;

}  // namespace

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kLargestTemplate)
    return Error{
        Code::invalid_argument, "line 1",
        fmt::format("the template has {} bytes, expected at most {}", source.size(), kLargestTemplate)};
  TIERD_ASSIGN(Body body, jinja::parse(source));
  Template made;
  made.body_ = std::make_shared<const Body>(std::move(body));
  return made;
}

Result<std::string> Template::render(const nlohmann::ordered_json& variables,
                                     const Rendering& rendering) const {
  Heap heap(rendering.most_bytes, rendering.most_steps);
  Scope scope;
  for (const auto& [name, json] : variables.items()) {
    TIERD_ASSIGN(scope.variables[name], value_of_json(heap, json));
  }
  TIERD_TRY(heap.check());
  return Interpreter(heap, rendering.now).render(*body_, scope);
}

}  // namespace tierd::jinja
