// A configuration value that the core passes on without interpreting it: a plugin's parameter.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace tierd {

struct Setting {
  std::string key;
  std::variant<int64_t, double, bool, std::string> value;
  std::string origin;  // "file:line", "--set"
};

}  // namespace tierd
