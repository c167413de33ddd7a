// The arguments of a call, and their assignment to the parameters of a function.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;
};

// The arguments in the order of the parameters; nothing for those that are not given.
class Bound {
 public:
  // Errors name `function`, the first parameter that is missing, or the argument that has none.
  static Result<Bound> bind(std::string_view function, const Arguments& arguments,
                            std::initializer_list<std::string_view> parameters, size_t required = 0);

  const Value* operator[](size_t i) const { return values_[i] ? &*values_[i] : nullptr; }
  // Return `otherwise` where the argument is not given. Errors name the parameter.
  Result<std::string> text(size_t i, std::string_view otherwise) const;
  Result<std::optional<std::string>> text_or_none(size_t i) const;
  Result<int64_t> integer(size_t i, int64_t otherwise) const;
  bool flag(size_t i, bool otherwise) const { return values_[i] ? is_true(*values_[i]) : otherwise; }

 private:
  Error expected(size_t i, std::string_view kind) const;

  std::string function_;
  std::vector<std::string_view> parameters_;
  std::vector<std::optional<Value>> values_;
};

}  // namespace tierd::jinja
