// Checks of a configuration's keys that need neither model nor agents: bounds, files that a key names, and
// parameters of a strategy that no key names.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/config/config.h"

namespace tierd {

// Errors name the key.
Status check_keys(const Config& config);

// Checks that a table with parameters of a strategy names that strategy. `what` describes it. Error:
// invalid_argument naming the first key of a table that names none.
Status check_named(const StrategyConfig& strategy, std::string_view table, std::string_view what);

}  // namespace tierd
