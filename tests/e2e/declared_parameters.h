// The parameters that a built plugin declares.
#pragma once

#include <string>
#include <vector>

namespace tierd {

struct DeclaredParameter {
  std::string name;
  std::string standard;  // in TOML
  std::string choices;   // "a|b", or empty
};

// `plugin`: KIND-NAME.
std::vector<DeclaredParameter> declared_parameters(const std::string& plugin);

}  // namespace tierd
