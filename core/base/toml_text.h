// TOML of people who may mean ill: bounded before it is parsed.
#pragma once

#include <istream>
#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "core/base/result.h"

namespace tierd {

inline constexpr size_t kMostTomlBytes = 1u << 20;
inline constexpr size_t kDeepestToml = 64;  // tables and arrays inside each other

// The table of a text. `origin` names it in errors: invalid_argument with the line and what is wrong there,
// also for a text that is too long or too deep (toml++ follows dotted keys as deep as they go, and takes them
// down again recursively).
Result<toml::table> parse_toml(std::string_view text, const std::string& origin);
// The same of a file that is open, of which no more is read.
Result<toml::table> parse_toml(std::istream& in, const std::string& origin);

}  // namespace tierd
