// The loss of one model against another on a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tierd {

// Compares the logits of two models after the same tokens. Logarithms are natural.
class Loss {
 public:
  // Adds the logits [vocab] of both for the token `next`.
  void add(std::span<const float> reference, std::span<const float> subject, uint32_t next);

  uint64_t tokens() const { return divergences_.size(); }
  double reference_perplexity() const;
  double subject_perplexity() const;
  // Kullback-Leibler divergence of the subject from the reference, in nats a token.
  double mean_divergence() const;
  double divergence_quantile(double share) const;  // 1: the largest
  // The largest difference of any logit; 0 if all have the same bits.
  float largest_difference() const { return largest_difference_; }

 private:
  double reference_nats_ = 0;
  double subject_nats_ = 0;
  std::vector<double> divergences_;  // [tokens]
  float largest_difference_ = 0;
};

// Returns the entropy of the distribution of a row of logits, in nats.
double entropy(std::span<const float> logits);

}  // namespace tierd
