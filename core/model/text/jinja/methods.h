// The methods of texts, lists and dicts that change nothing.
#pragma once

#include <string_view>

#include "core/model/text/jinja/call.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

bool has_method(const Value& value, std::string_view name);
// Needs has_method.
Result<Value> call_method(Heap& heap, const Value& self, const std::string& name, const Arguments& arguments);

}  // namespace tierd::jinja
