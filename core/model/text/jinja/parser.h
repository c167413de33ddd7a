// Reads a template into its syntax tree.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/model/text/jinja/syntax.h"

namespace tierd::jinja {

// Error: invalid_argument or unsupported; its origin is the line, as "line 3".
Result<Body> parse(std::string_view source);

}  // namespace tierd::jinja
