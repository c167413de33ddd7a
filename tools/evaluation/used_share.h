// The share of a run's weights that its steps used, beside the predictor's settings.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/report/figure.h"
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

struct UsedFigures {
  double neurons = 0, bytes = 0;
  std::map<std::string, decltype(Setting::value)> asked;

  static constexpr auto figures() {
    using F = UsedFigures;
    return std::tuple(
        Figure{&F::neurons, "neurons", Quantity::share, Adds::latest, "of the sites' neurons"},
        Figure{&F::bytes, "bytes", Quantity::share, Adds::latest, "of the sites' bytes"},
        Figure{&F::asked, "asked", Quantity::parts, Adds::latest, "the predictor's configured parameters"});
  }
};

// Returns nothing if no site can leave neurons out or nothing was computed.
std::optional<UsedFigures> used_figures(const UsedCounts& counts, const StrategyConfig& predictor);
// Returns "86.1 % of the neurons and 74.0 % of the bytes of what predictor top-k may leave out; …".
std::string used_text(const UsedFigures& used, const std::string& predictor);

}  // namespace tierd
