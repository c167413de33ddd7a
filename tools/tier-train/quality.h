// How well a predictor finds the active neurons.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "tools/tier-train/activations.h"
#include "tools/tier-train/low_rank.h"

namespace tierd {

// Counted over all pairs of a token and a neuron.
struct Quality {
  double threshold = 0;    // predicted is what has sigmoid(score) above it; 0 where a share was predicted
  uint64_t pairs = 0;      // of which are …
  uint64_t active = 0;     // … truly active,
  uint64_t predicted = 0;  // … predicted to be,
  uint64_t missed = 0;     // … active and not predicted: false negatives,
  uint64_t spurious = 0;   // … predicted and not active: false positives
  double mass = 0;         // the sum of all contributions
  double missed_mass = 0;  // and that of the missed

  // Percentages; 0 of nothing.
  double active_percent() const;
  double predicted_percent() const;
  double missed_percent() const;    // of the active
  double recall_percent() const;    // the rest of them
  double spurious_percent() const;  // of the inactive
  double missed_mass_percent() const;
};

// Adds the pairs of one token to `quality`, where predicted is what scores above `least`: both spans [d_ff].
void count(Quality& quality, float least, std::span<const float> scores,
           std::span<const float> contributions);

// Calls judge(scores, contributions), each [d_ff], for every token of the layer from `first` on; scores are
// of what the network of `input_of` computes from. Errors: those of reading.
Status for_each_token(
    const LowRank& predictor, const Activations& activations, uint32_t layer, uint32_t input_of,
    uint32_t first,
    const std::function<void(std::span<const float> scores, std::span<const float> contributions)>& judge);

// One for each threshold, over the tokens from `first` up to the last. Errors: those of reading.
Result<std::vector<Quality>> evaluate(const LowRank& predictor, const Activations& activations,
                                      uint32_t layer, uint32_t first, std::span<const double> thresholds);

// Over all tokens, where predicted is so large a share of the neurons, those of the highest scores, and
// scores are of what the network of `input_of` computes from. Errors: those of reading.
Result<Quality> evaluate_share(const LowRank& predictor, const Activations& activations, uint32_t layer,
                               uint32_t input_of, double share);

}  // namespace tierd
