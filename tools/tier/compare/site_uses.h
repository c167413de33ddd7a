// How well it was predicted what a run's steps use.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/run/runtime.h"

namespace tierd {

// One object a site that was measured, [{"site", "rows", "active", "predicted", "recall", ...}], and a last
// one, "all", of the sums. Shares are between 0 and 1.
nlohmann::json measured_sites(const Runtime& run);
// The same, where a model has many sites, one object for each kind of operator.
nlohmann::json measured_operators(const Runtime& run);

}  // namespace tierd
