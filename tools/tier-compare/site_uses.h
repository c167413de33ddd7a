// How much of a run's weights its steps used, and how well that was predicted.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/run/runtime.h"

namespace tierd {

// The share that a run used of everything that a predictor may leave out, summed over the rows of all steps.
struct UsedShare {
  double neurons = 1;
  double bytes = 1;  // of the best edition
  bool any = false;  // there is something that a predictor may leave out
};
UsedShare used_share(const Runtime& run);

// One object a site that was measured, [{"site", "rows", "active", "predicted", "recall", ...}], and a last
// one, "all", of the sums. Shares are between 0 and 1.
nlohmann::json measured_sites(const Runtime& run);
// The same, where a model has many sites, one object for each kind of operator.
nlohmann::json measured_operators(const Runtime& run);

}  // namespace tierd
