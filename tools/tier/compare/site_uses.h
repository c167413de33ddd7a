// How well the neurons of a run's steps were predicted.
#pragma once

#include <string>
#include <vector>

#include "core/report/figure.h"
#include "core/run/runtime.h"

namespace tierd {

struct SiteFigures {
  std::string site;
  uint64_t rows = 0;
  double active = 0, predicted = 0, recall = 0, precision = 0;
  double false_negatives = 0, false_positives = 0, missed_mass = 0;

  static constexpr auto figures() {
    using F = SiteFigures;
    return std::tuple(
        Figure{&F::site, "site", Quantity::text, Adds::latest, "its name, a kind of operator, or all"},
        Figure{&F::rows, "rows", Quantity::count, Adds::latest, "that were measured"},
        Figure{&F::active, "active", Quantity::share, Adds::latest, "of the neurons"},
        Figure{&F::predicted, "predicted", Quantity::share, Adds::latest, "of the neurons"},
        Figure{&F::recall, "recall", Quantity::share, Adds::latest, "of the active neurons, predicted"},
        Figure{&F::precision, "precision", Quantity::share, Adds::latest, "of the predicted, active"},
        Figure{&F::false_negatives, "false_negatives", Quantity::share, Adds::latest, "of the active"},
        Figure{&F::false_positives, "false_positives", Quantity::share, Adds::latest, "of the silent"},
        Figure{&F::missed_mass, "missed_mass", Quantity::share, Adds::latest, "of the contributions"});
  }
};

// Returns the figures of each measured site, and last those of all of them.
std::vector<SiteFigures> measured_sites(const Runtime& run);
// The same with one element for each kind of operator, for models with many sites.
std::vector<SiteFigures> measured_operators(const Runtime& run);

}  // namespace tierd
