// Reads and changes whole files in tests.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace tierd {

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void flip_bit(const std::string& path, size_t offset, int bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ (1 << bit));
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

}  // namespace tierd
