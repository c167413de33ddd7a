// jinja2's tests: "value is name".
#pragma once

#include <string_view>

#include "core/model/text/jinja/call.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

bool is_test(std::string_view name);
// Error: unsupported for an unknown name.
Result<bool> apply_test(Heap& heap, const std::string& name, const Value& value, const Arguments& arguments);

}  // namespace tierd::jinja
