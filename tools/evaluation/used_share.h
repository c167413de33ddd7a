// The share of a run's weights that its steps used, beside the predictor's settings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"

namespace tierd {

// Counts over all sites of which a predictor may leave out neurons, summed over the rows of steps.
struct UsedCounts {
  double used = 0, all = 0;  // neurons
  double used_bytes = 0;     // each neuron in the edition that it was used in
  double all_bytes = 0;      // of the best edition

  bool any() const { return all > 0; }
  double neuron_share() const { return used / all; }
  double byte_share() const { return used_bytes / all_bytes; }
};
UsedCounts used_counts(const Runtime& run);
// Returns the counts of the steps between two moments of one run.
UsedCounts operator-(const UsedCounts& after, const UsedCounts& before);

// Returns {"neurons", "bytes", "asked": the predictor's parameters as the configuration sets them}; null if
// no site can leave neurons out or nothing was computed.
nlohmann::json used_json(const UsedCounts& counts, const StrategyConfig& predictor);
// Returns "86.1 % of the neurons and 74.0 % of the bytes of what predictor top-k may leave out; …".
std::string used_text(const nlohmann::json& used, const std::string& predictor);

}  // namespace tierd
