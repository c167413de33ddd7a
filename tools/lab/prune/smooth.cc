#include "tools/lab/prune/smooth.h"

#include <algorithm>
#include <cmath>

namespace tierd {

void smooth(NormWeights& norm, std::span<LinearWeights* const> operators, std::span<const float> largest,
            float strength) {
  std::vector<float> scale(norm.weight.size());  // max |W_j|, then s_j
  for (const LinearWeights* linear : operators) {
    for (size_t at = 0; at < linear->weight.size(); ++at) {
      float& most = scale[at % linear->cols];
      most = std::max(most, std::fabs(linear->weight[at]));
    }
  }
  for (size_t j = 0; j < scale.size(); ++j) {
    const bool silent = scale[j] == 0 || largest[j] == 0;
    scale[j] = silent ? 1 : std::pow(largest[j], strength) / std::pow(scale[j], 1 - strength);
  }
  for (LinearWeights* linear : operators) {
    for (size_t at = 0; at < linear->weight.size(); ++at) linear->weight[at] *= scale[at % linear->cols];
  }
  for (size_t j = 0; j < scale.size(); ++j) {
    norm.weight[j] /= scale[j];
    if (!norm.bias.empty()) norm.bias[j] /= scale[j];
  }
}

}  // namespace tierd
