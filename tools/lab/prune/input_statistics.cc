#include "tools/lab/prune/input_statistics.h"

#include <algorithm>
#include <cmath>

namespace tierd {

InputStatistics::InputStatistics(uint32_t width, bool with_gram)
    : squares_(width), largest_(width), gram_(with_gram ? uint64_t{width} * width : 0) {}

void InputStatistics::add(const TokenRows& x, MatrixTeam& team) {
  ++windows_;
  for (uint32_t t = 0; t < x.count; ++t) {
    const std::span<const float> row = x.row(t);
    for (uint32_t j = 0; j < x.width; ++j) {
      squares_[j] += static_cast<double>(row[j]) * row[j];
      largest_[j] = std::max(largest_[j], std::fabs(row[j]));
    }
  }
  if (!gram_.empty()) team.add_gram(x, gram_);
}

std::vector<float> InputStatistics::norms() const {
  std::vector<float> norms(squares_.size());
  for (size_t j = 0; j < norms.size(); ++j) norms[j] = static_cast<float>(std::sqrt(squares_[j]));
  return norms;
}

}  // namespace tierd
