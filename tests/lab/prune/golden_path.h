// The paths of the models in tests/golden.
#pragma once

#include <filesystem>
#include <string>

namespace tierd {

// Returns the path that a user would give: the folder, or the first of its GGUF files.
inline std::string golden_path(const std::filesystem::path& folder) {
  std::string first;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path();
    if (path.ends_with(".gguf") && (first.empty() || path < first)) first = path;
  }
  return first.empty() ? folder.string() : first;
}
inline std::string golden_model(const std::string& name) {
  return golden_path(std::filesystem::path(TIERD_SOURCE_DIR "/tests/golden/models") / name);
}

}  // namespace tierd
