// Python's operators, and access to attributes and items as jinja2's sandbox has it.
#pragma once

#include <string_view>

#include "core/model/text/jinja/call.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

// `name`: + - * / // % ** or ~, which joins texts.
Result<Value> operate(Heap& heap, std::string_view name, const Value& a, const Value& b);
Result<Value> negative(const Value& value);
// `name`: == != < <= > >= in, "not in".
Result<bool> compares(Heap& heap, std::string_view name, const Value& a, const Value& b);

// A method of a value, not yet called.
struct Method : Object {
  Value self;
  std::string name;
};

// `name` must outlive the result, which names it where it is undefined. An attribute of an undefined value is
// an error; private names and methods that change their object are undefined.
Result<Value> attribute_of(const Value& object, const std::string& name);
// Returns undefined for a key that is missing.
Result<Value> item_of(Heap& heap, const Value& object, const Value& key);
// The bounds may be none or undefined where they are not given.
Result<Value> slice_of(Heap& heap, const Value& object, const Value& begin, const Value& end,
                       const Value& step);

// Formats as "%" of a text does. Supported are %s, %r, %d, %i, %f and %%.
Result<Value> formatted(Heap& heap, const std::string& form, const Value& values);

// The error of a use of an undefined value.
Error undefined_error(const Value& value);

}  // namespace tierd::jinja
