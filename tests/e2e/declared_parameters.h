// The parameters that a plugin of the build declares. They have a unit of their own, since headers of agents
// and those of programs that tests start both have a Program.
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
