#include "core/model/text/jinja/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/utf8.h"
#include "core/model/text/jinja/methods.h"
#include "core/model/text/jinja/operators.h"
#include "core/model/text/jinja/strftime.h"

namespace tierd::jinja {
namespace {

constexpr size_t kMostAttributes = 256;  // of namespace(…)

}  // namespace

std::optional<Value> LoopState::attribute(std::string_view name) const {
  const auto number = [](size_t value) { return Value(static_cast<int64_t>(value)); };
  if (name == "index") return number(index + 1);
  if (name == "index0") return number(index);
  if (name == "revindex") return number(items.size() - index);
  if (name == "revindex0") return number(items.size() - index - 1);
  if (name == "length") return number(items.size());
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == items.size());
  if (name == "depth") return number(1);
  if (name == "depth0") return number(0);
  if (name == "previtem" && index != 0) return items[index - 1];
  if (name == "nextitem" && index + 1 != items.size()) return items[index + 1];
  return {};
}

Value macro_value(const Macro& macro, Scope& scope) {
  auto made = std::make_shared<MacroValue>();
  made->macro = &macro;
  made->scope = &scope;
  return Value(std::shared_ptr<Object>(std::move(made)));
}

Value global_value(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames = {"dict", "namespace", "raise_exception", "range",
                                                             "strftime_now"};
  const auto at = std::ranges::find(kNames, name);
  if (at == kNames.end()) return {};
  auto made = std::make_shared<GlobalValue>();
  made->name = *at;
  return Value(std::shared_ptr<Object>(std::move(made)));
}

Status set_in_namespace(Namespace& space, const std::string& name, Value value) {
  if (name.starts_with('_'))
    return wrong(fmt::format("a namespace cannot keep '{}', which begins with '_'", shown(name)));
  if (value.object() != nullptr) return wrong(fmt::format("a namespace cannot keep {}", kind_of(value)));
  space.set(name, std::move(value));
  return {};
}

Result<Value> Interpreter::call(const Expression& expression, Scope& scope, const Value& caller) {
  TIERD_ASSIGN(const Value function, value_of(*expression.parts[0], scope));
  TIERD_ASSIGN(Arguments arguments, values_of(expression.arguments, scope));
  Object* const object = function.object();
  if (const auto* const macro = dynamic_cast<MacroValue*>(object))
    return call_macro(*macro, std::move(arguments), caller);
  if (!caller.is_undefined()) return wrong("{% call %} of a value that is no macro");
  if (const auto* const method = dynamic_cast<Method*>(object))
    return call_method(heap_, method->self, method->name, arguments);
  if (const auto* const global = dynamic_cast<GlobalValue*>(object))
    return call_global(global->name, arguments);
  if (function.is_undefined()) return undefined_error(function);
  return wrong(fmt::format("{} cannot be called", kind_of(function)));
}

Status Interpreter::take_parameters(const Macro& macro, Arguments& arguments, Scope& scope) {
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [name, otherwise] = macro.parameters[i];
    Value& parameter = scope.variables[name];
    const auto named = std::ranges::find(arguments.named, name, [](const auto& one) { return one.first; });
    if (i < arguments.values.size()) {
      parameter = arguments.values[i];
    } else if (named != arguments.named.end()) {
      parameter = std::move(named->second);
      arguments.named.erase(named);
    } else if (otherwise != nullptr) {
      TIERD_ASSIGN(parameter, value_of(*otherwise, scope));
    } else {
      parameter = Value(Undefined{&name});
    }
  }
  const size_t taken = std::min(macro.parameters.size(), arguments.values.size());
  arguments.values.erase(arguments.values.begin(), arguments.values.begin() + static_cast<ptrdiff_t>(taken));
  return {};
}

Result<Value> Interpreter::call_macro(const MacroValue& value, Arguments arguments, const Value& caller) {
  const Macro& macro = *value.macro;
  Scope scope{value.scope};
  TIERD_TRY(take_parameters(macro, arguments, scope));
  if (!macro.reads.rest && !arguments.values.empty())
    return wrong(fmt::format("the macro '{}' has {} parameters, found {} more arguments", macro.name,
                             macro.parameters.size(), arguments.values.size()));
  if (!macro.reads.options && !arguments.named.empty())
    return wrong(
        fmt::format("the macro '{}' has no parameter '{}'", macro.name, arguments.named.front().first));
  if (!macro.reads.caller && !caller.is_undefined())
    return wrong(fmt::format("the macro '{}' reads no caller", macro.name));
  if (macro.reads.rest)
    scope.variables["varargs"] = heap_.sequence(Sequence::Kind::tuple, std::move(arguments.values));
  if (macro.reads.options) {
    TIERD_ASSIGN(scope.variables["kwargs"], make_dict({{}, std::move(arguments.named)}));
  }
  if (macro.reads.caller && macro.name != "caller") scope.variables["caller"] = caller;
  std::string out;
  TIERD_TRY(run(macro.body, scope, out));
  return heap_.text(std::move(out));
}

Result<Value> Interpreter::call_global(std::string_view name, const Arguments& arguments) {
  if (name == "range") return make_range(arguments);
  if (name == "dict") return make_dict(arguments);
  if (name == "namespace") return make_namespace(arguments);
  const bool raises = name == "raise_exception";
  TIERD_ASSIGN(const Bound bound, Bound::bind(name, arguments, {raises ? "message" : "format"}, 1));
  if (raises) {
    TIERD_ASSIGN(const std::string message, str(*bound[0]));
    return wrong("refused by the template: " + shown(message, 500));
  }
  TIERD_ASSIGN(const std::string format, bound.text(0, ""));
  TIERD_ASSIGN(std::string date, formatted_date(format, now_));
  return heap_.text(std::move(date));
}

Result<Value> Interpreter::make_range(const Arguments& arguments) {
  TIERD_ASSIGN(const Bound bound, Bound::bind("range", arguments, {"start", "stop", "step"}, 1));
  TIERD_ASSIGN(int64_t begin, bound.integer(0, 0));
  TIERD_ASSIGN(int64_t end, bound.integer(1, 0));
  TIERD_ASSIGN(const int64_t step, bound.integer(2, 1));
  if (bound[1] == nullptr) end = std::exchange(begin, 0);
  if (step == 0) return wrong("the step of range is 0");
  std::vector<Value> items;
  bool beyond = false;
  for (int64_t at = begin; !beyond && (step > 0 ? at < end : at > end);) {
    if (items.size() == kMostItems) return wrong(fmt::format("a range has more than {} numbers", kMostItems));
    items.emplace_back(at);
    beyond = __builtin_add_overflow(at, step, &at);
  }
  return heap_.sequence(Sequence::Kind::range, std::move(items));
}

Result<Value> Interpreter::make_dict(const Arguments& arguments) {
  if (arguments.values.size() > 1) return wrong("dict has more than one argument without a name");
  auto made = std::make_shared<Dict>();
  if (!arguments.values.empty() && arguments.values[0].dict() != nullptr) {
    for (const auto& [key, value] : arguments.values[0].dict()->items) made->set(key, value);
  } else if (!arguments.values.empty()) {
    TIERD_ASSIGN(const std::vector<Value> pairs, items_of(heap_, arguments.values[0]));
    for (const Value& one : pairs) {
      TIERD_ASSIGN(const std::vector<Value> pair, items_of(heap_, one));
      if (pair.size() != 2 || !made->set(pair[0], pair[1]))
        return wrong("dict of a list whose items are no pairs of key and value");
    }
  }
  for (const auto& [name, value] : arguments.named) made->set(heap_.text(name), value);
  return heap_.dict(std::move(made));
}

Result<Value> Interpreter::make_namespace(const Arguments& arguments) {
  TIERD_ASSIGN(const Value attributes, make_dict(arguments));
  if (attributes.dict()->items.size() > kMostAttributes)
    return wrong(fmt::format("a namespace has more than {} attributes", kMostAttributes));
  auto made = std::make_shared<Namespace>();
  for (const auto& [key, value] : attributes.dict()->items) {
    if (key.text() == nullptr)
      return wrong(fmt::format("a namespace has {} as the name of an attribute", kind_of(key)));
    TIERD_TRY(set_in_namespace(*made, *key.text(), value));
  }
  return Value(std::shared_ptr<Object>(std::move(made)));
}

}  // namespace tierd::jinja
