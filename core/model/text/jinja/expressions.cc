// The values of expressions.
#include <fmt/format.h>

#include "core/model/text/jinja/filters.h"
#include "core/model/text/jinja/functions.h"
#include "core/model/text/jinja/interpreter.h"
#include "core/model/text/jinja/operators.h"
#include "core/model/text/jinja/tests.h"

namespace tierd::jinja {
Result<Value> Interpreter::value_of(const Expression& expression, Scope& scope) {
  const Level level(depth_);
  TIERD_TRY(level.check());
  heap_.spend(1);
  auto value = compute(expression, scope);
  if (value.ok()) {
    const Status sound = heap_.check();
    if (sound.ok()) return value;
    value = sound.error();
  }
  Error error = value.error();
  if (error.origin.empty()) error.origin = fmt::format("line {}", expression.line);
  return error;
}

Result<Value> Interpreter::compute(const Expression& expression, Scope& scope) {
  switch (expression.kind) {
    case Expression::Kind::constant:
      return expression.constant;
    case Expression::Kind::name:
      return value_of_name(expression, scope);
    case Expression::Kind::slice:
      return value_of_slice(expression, scope);
    case Expression::Kind::list:
    case Expression::Kind::tuple:
      return value_of_items(expression, scope);
    case Expression::Kind::dict:
      return value_of_dict(expression, scope);
    case Expression::Kind::comparison:
      return value_of_comparison(expression, scope);
    case Expression::Kind::choice:
      return value_of_choice(expression, scope);
    case Expression::Kind::call:
      return call(expression, scope, Value());
    case Expression::Kind::filter:
      return value_of_filter(expression, scope, nullptr);
    default:
      break;
  }
  TIERD_ASSIGN(const Value first, value_of(*expression.parts[0], scope));
  switch (expression.kind) {
    case Expression::Kind::attribute:
      return attribute_of(first, expression.name);
    case Expression::Kind::inverse:
      return Value(!is_true(first));
    case Expression::Kind::sign:
      if (expression.name == "-") return negative(first);
      return first.number() ? Result<Value>(first)
                            : wrong(fmt::format("'+' is not defined for {}", kind_of(first)));
    case Expression::Kind::both:
      return is_true(first) ? value_of(*expression.parts[1], scope) : Result<Value>(first);
    case Expression::Kind::either:
      return is_true(first) ? Result<Value>(first) : value_of(*expression.parts[1], scope);
    case Expression::Kind::test: {
      TIERD_ASSIGN(const Arguments arguments, values_of(expression.arguments, scope));
      TIERD_ASSIGN(const bool holds, apply_test(heap_, expression.name, first, arguments));
      return Value(holds);
    }
    default:
      break;
  }
  TIERD_ASSIGN(const Value second, value_of(*expression.parts[1], scope));
  return expression.kind == Expression::Kind::item ? item_of(heap_, first, second)
                                                   : operate(heap_, expression.name, first, second);
}

Result<Value> Interpreter::value_of_name(const Expression& expression, const Scope& scope) const {
  for (const Scope* at = &scope; at != nullptr; at = at->outer) {
    const auto found = at->variables.find(expression.name);
    if (found != at->variables.end()) return found->second;
  }
  const Value global = global_value(expression.name);
  return global.is_undefined() ? Value(Undefined{&expression.name}) : global;
}

Result<Value> Interpreter::value_of_slice(const Expression& expression, Scope& scope) {
  Value parts[4] = {{}, Value(None()), Value(None()), Value(None())};
  for (size_t i = 0; i < 4; ++i) {
    if (expression.parts[i] == nullptr) continue;
    TIERD_ASSIGN(parts[i], value_of(*expression.parts[i], scope));
  }
  return slice_of(heap_, parts[0], parts[1], parts[2], parts[3]);
}

Result<Value> Interpreter::value_of_items(const Expression& expression, Scope& scope) {
  std::vector<Value> items;
  for (const ExpressionPtr& part : expression.parts) {
    TIERD_ASSIGN(items.emplace_back(), value_of(*part, scope));
  }
  return heap_.sequence(
      expression.kind == Expression::Kind::list ? Sequence::Kind::list : Sequence::Kind::tuple,
      std::move(items));
}

Result<Value> Interpreter::value_of_dict(const Expression& expression, Scope& scope) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i < expression.parts.size(); i += 2) {
    TIERD_ASSIGN(const Value key, value_of(*expression.parts[i], scope));
    TIERD_ASSIGN(Value value, value_of(*expression.parts[i + 1], scope));
    heap_.spend_on(weight_of(key));
    if (!dict->set(key, std::move(value)))
      return wrong(fmt::format("{} cannot be a key of a dict", kind_of(key)));
  }
  return heap_.dict(std::move(dict));
}

Result<Value> Interpreter::value_of_comparison(const Expression& expression, Scope& scope) {
  TIERD_ASSIGN(Value left, value_of(*expression.parts[0], scope));
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    TIERD_ASSIGN(Value right, value_of(*expression.parts[i + 1], scope));
    TIERD_ASSIGN(const bool holds, compares(heap_, expression.operators[i], left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::value_of_choice(const Expression& expression, Scope& scope) {
  TIERD_ASSIGN(const Value condition, value_of(*expression.parts[1], scope));
  if (is_true(condition)) return value_of(*expression.parts[0], scope);
  return expression.parts[2] == nullptr ? Result<Value>(Value()) : value_of(*expression.parts[2], scope);
}

Result<Value> Interpreter::value_of_filter(const Expression& expression, Scope& scope, const Value* base) {
  const Expression* const inner = expression.parts[0].get();
  Value value;
  if (inner == nullptr) {
    value = *base;
  } else {
    TIERD_ASSIGN(value, base != nullptr && inner->kind == Expression::Kind::filter
                            ? value_of_filter(*inner, scope, base)
                            : value_of(*inner, scope));
  }
  TIERD_ASSIGN(const Arguments arguments, values_of(expression.arguments, scope));
  return apply_filter(heap_, expression.name, value, arguments);
}

Result<Arguments> Interpreter::values_of(const ArgumentList& list, Scope& scope) {
  Arguments arguments;
  for (const ExpressionPtr& value : list.values) {
    TIERD_ASSIGN(arguments.values.emplace_back(), value_of(*value, scope));
  }
  for (const auto& [name, value] : list.named) {
    TIERD_ASSIGN(Value one, value_of(*value, scope));
    arguments.named.emplace_back(name, std::move(one));
  }
  return arguments;
}

}  // namespace tierd::jinja
