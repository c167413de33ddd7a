// The values of a rendering that can be called, and the state of loops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/text/jinja/interpreter.h"

namespace tierd::jinja {

// A macro, or the block of {% call %}. Its scope outlives it: no list, dict or namespace can keep it.
struct MacroValue : Object {
  const Macro* macro = nullptr;
  Scope* scope = nullptr;
};

// A function that every template has.
struct GlobalValue : Object {
  std::string_view name;
};

struct LoopState : Object {
  std::vector<Value> items;
  size_t index = 0;
  std::optional<Value> attribute(std::string_view name) const override;
};

Value macro_value(const Macro& macro, Scope& scope);
// Returns undefined if there is no such function.
Value global_value(std::string_view name);
Status set_in_namespace(Namespace& space, const std::string& name, Value value);

}  // namespace tierd::jinja
