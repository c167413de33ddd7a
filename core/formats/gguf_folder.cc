#include "core/formats/gguf_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".gguf";
constexpr std::string_view kShardForm = "-#####-of-#####.gguf";  // each # a digit
constexpr size_t kMostNamesShown = 20;

bool is_shard(std::string_view name) {
  if (name.size() <= kShardForm.size()) return false;
  name.remove_prefix(name.size() - kShardForm.size());
  return std::equal(name.begin(), name.end(), kShardForm.begin(), [](char found, char form) {
    return form == '#' ? found >= '0' && found <= '9' : found == form;
  });
}

// Returns the name of the file to open for this one: for a shard, the first shard of its set.
std::string first_of(const std::string& name) {
  if (!is_shard(name)) return name;
  constexpr std::string_view kFirst = "-00001";
  std::string first = name;
  return first.replace(name.size() - kShardForm.size(), kFirst.size(), kFirst);
}

}  // namespace

Result<std::optional<std::string>> gguf_of_folder(const std::string& folder) {
  std::set<std::string> models;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    std::error_code unknown;
    if (name.ends_with(kEnding) && !it->is_directory(unknown)) models.insert(first_of(name));
  }
  if (failed) return Error{Code::io_error, folder, "cannot list: " + failed.message()};
  if (models.empty()) return std::optional<std::string>();
  if (models.size() == 1) return std::optional((fs::path(folder) / *models.begin()).string());
  std::vector<std::string> shown(models.begin(), models.end());
  if (shown.size() > kMostNamesShown) {
    shown.resize(kMostNamesShown);
    shown.push_back(fmt::format("and {} more", models.size() - kMostNamesShown));
  }
  return Error{
      Code::invalid_argument, folder,
      fmt::format("holds {} GGUF models, name the one to open: {}", models.size(), fmt::join(shown, ", "))};
}

}  // namespace tierd
