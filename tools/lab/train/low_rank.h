// A low-rank predictor of one layer ("LLM in a flash", section 3.1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tierd {

// The scores of an input x [d_model] of the feed-forward network, after its norm, are b (a x) + bias [d_ff].
// A neuron counts as active where sigmoid(score) is above a threshold.
struct LowRank {
  uint32_t rank = 0;
  uint32_t d_model = 0;
  uint32_t d_ff = 0;
  std::vector<float> a;     // [rank x d_model]
  std::vector<float> b;     // [d_ff x rank]
  std::vector<float> bias;  // [d_ff]
};

// Stores the scores [tokens x d_ff] of the inputs x [tokens x d_model].
void score(const LowRank& predictor, std::span<const float> x, std::span<float> scores);

}  // namespace tierd
