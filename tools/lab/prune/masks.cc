#include "tools/lab/prune/masks.h"

#include <cmath>
#include <vector>

namespace tierd {
namespace {

// Sets the smallest weights by score of a row or matrix, or of each of its groups, to zero.
void zero_smallest(std::span<float> weight, std::span<const float> scores, const Pattern& pattern) {
  std::vector<uint8_t> pruned(weight.size());
  if (pattern.in_groups()) {
    mark_in_groups(scores, pattern, pruned);
  } else {
    mark_smallest(scores, pattern.pruned_of(weight.size()), pruned);
  }
  for (size_t i = 0; i < weight.size(); ++i) {
    if (pruned[i] != 0) weight[i] = 0;
  }
}

}  // namespace

void prune_by_magnitude(std::span<float> weight, const Pattern& pattern) {
  std::vector<float> scores(weight.size());
  for (size_t i = 0; i < weight.size(); ++i) scores[i] = std::fabs(weight[i]);
  zero_smallest(weight, scores, pattern);
}

void prune_by_wanda(std::span<float> weight, std::span<const float> norms, const Pattern& pattern) {
  std::vector<float> scores(norms.size());
  for (size_t at = 0; at < weight.size(); at += norms.size()) {
    const std::span<float> row = weight.subspan(at, norms.size());
    for (size_t j = 0; j < row.size(); ++j) scores[j] = std::fabs(row[j]) * norms[j];
    zero_smallest(row, scores, pattern);
  }
}

}  // namespace tierd
