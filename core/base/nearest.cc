#include "core/base/nearest.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tierd {
namespace {

constexpr size_t kLongestMistake = 64;  // longer words are no misspellings, and slow to compare

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kLongestMistake) return "";
  const auto last_part = [](std::string_view path) { return path.substr(path.rfind('.') + 1); };
  const auto table = [](std::string_view path) { return path.substr(0, path.rfind('.')); };
  std::string_view best;
  size_t least = SIZE_MAX;
  for (const std::string_view candidate : known) {
    // A right word in the wrong table is near, too, and so is a table used as a key.
    size_t distance = edit_distance(word, candidate);
    if (candidate.find('.') != std::string_view::npos) {
      distance = std::min(distance, edit_distance(word, table(candidate)) + 1);
      const size_t of_last = edit_distance(last_part(word), last_part(candidate));
      if (of_last <= last_part(word).size() / 3) distance = std::min(distance, of_last + 1);
    }
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return least <= 1 + word.size() / 3 ? best : "";
}

}  // namespace tierd
