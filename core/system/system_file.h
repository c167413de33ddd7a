// Files that the kernel generates when they are read.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace tierd {

// Returns the text of a file such as those of /proc and of cgroups; empty if it cannot be read.
inline std::string read_system_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace tierd
