// Matrices and texts for tests of pruning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tools/lab/prune/matrix_team.h"

namespace tierd {

inline std::vector<float> random_values(Random& random, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = random.symmetric();
  return values;
}

// Returns inputs [tokens x width] whose channels are correlated and differ in magnitude, as activations do.
inline TokenRows correlated_rows(Random& random, uint32_t tokens, uint32_t width) {
  const uint32_t causes = width / 3 + 1;
  const std::vector<float> mix = random_values(random, size_t{causes} * width);
  TokenRows x(tokens, width);
  for (uint32_t t = 0; t < tokens; ++t) {
    const std::vector<float> cause = random_values(random, causes);
    for (uint32_t j = 0; j < width; ++j) {
      float sum = 0.2f * random.symmetric();
      for (uint32_t c = 0; c < causes; ++c) sum += cause[c] * mix[size_t{c} * width + j];
      x.row(t)[j] = sum * (j % 7 == 0 ? 3.0f : 0.5f);
    }
  }
  return x;
}

inline std::vector<std::vector<uint32_t>> random_windows(Random& random, uint32_t windows, uint32_t tokens,
                                                         uint32_t vocab) {
  std::vector<std::vector<uint32_t>> all(windows, std::vector<uint32_t>(tokens));
  for (auto& window : all) {
    for (uint32_t& token : window) token = random.below(vocab);
  }
  return all;
}

}  // namespace tierd
