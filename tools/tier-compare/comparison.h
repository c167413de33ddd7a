// What a configuration loses on a text, against one that leaves nothing out.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/engine/engine.h"

namespace tierd {

// Of the logits of two models after the same tokens. Natural logarithms.
class Loss {
 public:
  // What each says of the token that follows: [vocab].
  void add(std::span<const float> reference, std::span<const float> subject, uint32_t next);

  uint64_t tokens() const { return divergences_.size(); }
  double reference_perplexity() const;
  double subject_perplexity() const;
  // Kullback-Leibler divergence of the subject from the reference, in nats a token.
  double mean_divergence() const;
  double divergence_quantile(double share) const;  // 1: the largest
  // The largest difference of any logit; 0 when all of them have the same bits.
  float largest_difference() const { return largest_difference_; }

 private:
  double reference_nats_ = 0;
  double subject_nats_ = 0;
  std::vector<double> divergences_;  // [tokens]
  float largest_difference_ = 0;
};

// Passes the windows through both. `progress` hears of tokens. Errors: those of Engine::step.
Result<Loss> compare_on(Engine& reference, Engine& subject, const std::vector<std::vector<uint32_t>>& windows,
                        const std::function<void(uint64_t)>& progress);

}  // namespace tierd
