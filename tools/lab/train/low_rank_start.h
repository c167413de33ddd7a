// The predictor that training starts from: the decision of a layer, reduced to the rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tiers/compute/team.h"
#include "tools/lab/train/low_rank.h"

namespace tierd {

// The rule by which a neuron is active: weight x + bias is above 0.
struct Decision {
  std::vector<float> weight;  // [d_ff x d_model], gate where the network is gated, otherwise up
  std::vector<float> bias;    // [d_ff], less the threshold of the activation
};

// The mean and the covariance of a layer's inputs, which come in slices.
class InputMoments {
 public:
  explicit InputMoments(uint32_t d_model);

  // Adds the inputs `x` [tokens x d_model].
  void add(Team& team, std::span<const float> x);

  std::vector<double> mean() const;        // [d_model]
  std::vector<double> covariance() const;  // [d_model x d_model], the lower triangle by columns

 private:
  uint32_t d_model_;
  double tokens_ = 0;
  std::vector<double> sum_;       // [d_model]
  std::vector<double> products_;  // [d_model x d_model], the lower triangle by columns
};

// Returns the predictor of that rank whose b a is nearest to the decision's weight in the mean over the
// inputs (reduced-rank regression). The bias contains the part of the mean's score that b a does not have.
// Every component of a x has a variance of 1, and b and bias have a scale by which scores deviate by about 2.
LowRank start_of(const Decision& decision, const InputMoments& moments, uint32_t rank, Team& team);

}  // namespace tierd
