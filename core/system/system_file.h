// Files that the system makes up as they are read.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace tierd {

// Returns the text of a file such as those of /proc and of cgroups; nothing where it cannot be read.
inline std::string read_system_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace tierd
