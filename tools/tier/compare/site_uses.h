// How well the neurons of a run's steps were predicted.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/run/runtime.h"

namespace tierd {

// Returns an object for each measured site, [{"site", "rows", "active", "predicted", "recall", ...}], and a
// last one, "all", with the sums. Shares are between 0 and 1.
nlohmann::json measured_sites(const Runtime& run);
// The same with one object for each kind of operator, for models with many sites.
nlohmann::json measured_operators(const Runtime& run);

}  // namespace tierd
