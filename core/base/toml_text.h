// Parses TOML from untrusted sources: size and depth are checked first.
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "core/base/result.h"

namespace tierd {

inline constexpr size_t kMostTomlBytes = 1u << 20;
inline constexpr size_t kDeepestToml = 64;  // nested tables and arrays

// Returns the table of a text. `origin` names it in errors: invalid_argument with the line and the fault,
// also for a text that is too long or too deep (toml++ nests dotted keys without a limit and destroys the
// tables recursively).
Result<toml::table> parse_toml(std::string_view text, const std::string& origin);

}  // namespace tierd
