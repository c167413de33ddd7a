// Real tokenizers, where the machine has them. No test may require them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tierd {

// Returns `path` in $TIERD_SHARED, or in ../shared beside the source tree; "" if there is no such file.
inline std::string shared_file(const std::string& path) {
  const char* from_environment = std::getenv("TIERD_SHARED");
  const std::filesystem::path root = from_environment != nullptr
                                         ? from_environment
                                         : std::filesystem::path(TIERD_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path file = root / path;
  return std::filesystem::exists(file) ? file.string() : std::string();
}

}  // namespace tierd
