#include "core/model/text/jinja/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/utf8.h"

namespace tierd::jinja {

Result<Bound> Bound::bind(std::string_view function, const Arguments& arguments,
                          std::initializer_list<std::string_view> parameters, size_t required) {
  Bound bound;
  bound.function_ = function;
  bound.parameters_ = parameters;
  bound.values_.resize(parameters.size());
  if (arguments.values.size() > parameters.size())
    return wrong(fmt::format("{} has {} arguments, expected at most {}", function, arguments.values.size(),
                             parameters.size()));
  std::ranges::copy(arguments.values, bound.values_.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto at =
        static_cast<size_t>(std::ranges::find(bound.parameters_, name) - bound.parameters_.begin());
    if (at == parameters.size() || bound.values_[at])
      return wrong(fmt::format("{} has no argument '{}', or has it twice", function, shown(name)));
    bound.values_[at] = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!bound.values_[i])
      return wrong(fmt::format("{} lacks the argument '{}'", function, bound.parameters_[i]));
  }
  return bound;
}

Error Bound::expected(size_t i, std::string_view kind) const {
  return wrong(fmt::format("the argument '{}' of {} is {}, expected {}", parameters_[i], function_,
                           kind_of(*values_[i]), kind));
}

Result<std::string> Bound::text(size_t i, std::string_view otherwise) const {
  if (!values_[i]) return std::string(otherwise);
  if (values_[i]->text() == nullptr) return expected(i, "a text");
  return *values_[i]->text();
}

Result<std::optional<std::string>> Bound::text_or_none(size_t i) const {
  if (!values_[i] || values_[i]->is_none()) return std::optional<std::string>();
  TIERD_ASSIGN(std::string found, text(i, ""));
  return std::optional(std::move(found));
}

Result<int64_t> Bound::integer(size_t i, int64_t otherwise) const {
  if (!values_[i]) return otherwise;
  const auto found = values_[i]->integer();
  return found ? Result<int64_t>(*found) : expected(i, "an integer");
}

}  // namespace tierd::jinja
