// The loss of a low-rank predictor on a batch of tokens, and its gradient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tiers/compute/team.h"
#include "tools/lab/train/low_rank.h"

namespace tierd {

// A neuron is active in a token where its contribution is above 0.
struct TokenBatch {
  uint32_t tokens = 0;
  std::span<const float> x;              // [tokens x d_model]
  std::span<const float> contributions;  // [tokens x d_ff]
};

// The weight in the loss of a pair of a token and a neuron.
struct PairWeights {
  double active = 1;
  double inactive = 1;
};

// Buffers are kept from one batch to the next. Not thread-safe.
class LowRankGradient {
 public:
  // `team` outlives this.
  explicit LowRankGradient(Team& team) : team_(team) {}

  // Returns the binary cross entropy between the sigmoid of the scores and the activity, weighted, as the
  // mean over all pairs. Stores its gradient in `gradient`, which gets the shape of `predictor`.
  double compute(const LowRank& predictor, const TokenBatch& batch, PairWeights weights, LowRank& gradient);

 private:
  Team& team_;
  std::vector<float> hidden_;   // [tokens x rank], a x
  std::vector<float> slopes_;   // [pieces of neurons x tokens x rank], the loss by a x
  std::vector<double> losses_;  // [pieces of neurons]
};

}  // namespace tierd
