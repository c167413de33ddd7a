// The quality of a predictor: how many of the active neurons it finds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/train/activations.h"
#include "tools/lab/train/low_rank.h"

namespace tierd {

// Counts over all pairs of a token and a neuron.
struct Quality {
  double threshold = 0;    // a neuron with sigmoid(score) above it is predicted; 0 where a share is predicted
  uint64_t pairs = 0;      // all of them
  uint64_t active = 0;     // pairs that are active
  uint64_t predicted = 0;  // pairs that the predictor calls active
  uint64_t missed = 0;     // active and not predicted: false negatives
  uint64_t spurious = 0;   // predicted and not active: false positives
  double mass = 0;         // the sum of all contributions
  double missed_mass = 0;  // the sum of the contributions of missed pairs

  // Percentages; 0 where the whole is 0.
  double active_percent() const;
  double predicted_percent() const;
  double missed_percent() const;    // of the active pairs
  double recall_percent() const;    // 100 less missed_percent()
  double spurious_percent() const;  // of the inactive pairs
  double missed_mass_percent() const;
};

// Adds pairs to `quality`: a neuron whose score is above `least` is predicted. Both spans have one value a
// pair.
void count(Quality& quality, float least, std::span<const float> scores,
           std::span<const float> contributions);

// Calls judge(scores, contributions), each [d_ff], for every token of the layer from `first` on. The scores
// are computed from the input of the network of layer `input_of`. Errors: those of reading.
Status for_each_token(
    const LowRank& predictor, const Activations& activations, uint32_t layer, uint32_t input_of,
    uint32_t first,
    const std::function<void(std::span<const float> scores, std::span<const float> contributions)>& judge);

// Returns the quality at each threshold, over the tokens from `first` up to the last. Errors: those of
// reading.
Result<std::vector<Quality>> evaluate(const LowRank& predictor, const Activations& activations,
                                      uint32_t layer, uint32_t first, std::span<const double> thresholds);

// Returns the quality over all tokens where the share `share` of the neurons is predicted, those of the
// highest scores. The scores are computed from the input of the network of layer `input_of`. Errors: those of
// reading.
Result<Quality> evaluate_share(const LowRank& predictor, const Activations& activations, uint32_t layer,
                               uint32_t input_of, double share);

}  // namespace tierd
