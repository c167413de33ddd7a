// Checks of a configuration's keys that need neither model nor agents: bounds, files that a key names, and
// keys that say something to what no other key names.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/config/config.h"

namespace tierd {

// Errors name the key.
Status check_keys(const Config& config);

// Whether a table that tells a strategy something names that strategy. `what` it would be. Error:
// invalid_argument naming the first key of the table that is told to none.
Status check_named(const StrategyConfig& strategy, std::string_view table, std::string_view what);

}  // namespace tierd
