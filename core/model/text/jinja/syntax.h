// The syntax tree of a template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

// The arguments of a call, a filter or a test.
struct ArgumentList {
  std::vector<ExpressionPtr> values;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct Expression {
  enum class Kind : uint8_t {
    constant,
    name,
    attribute,  // parts: the object
    item,       // parts: the object, the key
    slice,      // parts: the object, begin, end, step; the last three may be NULL
    call,       // parts: the function
    filter,     // parts: the value; NULL inside a filter block
    test,       // parts: the value
    list,
    tuple,
    dict,        // parts: key, value, key, value …
    inverse,     // "not"
    sign,        // name: "-" or "+"
    operation,   // name: the operator; parts: both sides
    comparison,  // operators: one fewer than parts
    both,        // "and"
    either,      // "or"
    choice,      // parts: the value, the condition, the other value, which may be NULL
  };
  Kind kind = Kind::constant;
  uint32_t line = 0;
  uint32_t depth = 1;
  std::string name;  // of the variable, attribute, filter, test or operator
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> operators;
  ArgumentList arguments;
};

struct Statement;
using Body = std::vector<Statement>;

// A variable, a tuple of variables, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  bool is_tuple = false;
  std::string attribute;  // of the namespace names[0]; empty: none
};

// The variables of a macro beside its parameters that its body reads: varargs, kwargs, caller.
struct SpecialNames {
  bool rest = false;
  bool options = false;
  bool caller = false;
};

struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // with defaults, which may be NULL
  Body body;
  SpecialNames reads;
};

struct Statement {
  enum class Kind : uint8_t {
    text,
    output,      // value
    condition,   // conditions; the body of each; otherwise
    loop,        // target, value, filter
    assignment,  // target, value
    block,       // target, body, filter, of a {% set %} with a body
    macro,
    call,      // macro: the caller; value: the call
    filtered,  // filter, body
    with,      // targets and values of `assignments`, body
    scope,     // body, of {% generation %}
    leave,     // {% break %}
    skip,      // {% continue %}
  };
  Kind kind = Kind::text;
  uint32_t line = 0;
  std::string text;
  Target target;
  ExpressionPtr value;
  ExpressionPtr filter;
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
  Body otherwise;
  std::shared_ptr<Macro> macro;
};

}  // namespace tierd::jinja
