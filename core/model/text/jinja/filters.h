// jinja2's filters, and tojson as transformers has it.
#pragma once

#include <string_view>

#include "core/model/text/jinja/call.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

bool is_filter(std::string_view name);
// Error: unsupported for an unknown name.
Result<Value> apply_filter(Heap& heap, const std::string& name, const Value& value,
                           const Arguments& arguments);

}  // namespace tierd::jinja
