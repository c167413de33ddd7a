// From what a configuration names to plugins that are loaded and checked.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/host/plugin_path.h"
#include "core/host/strategy_set.h"

namespace tierd {

// Where plugins are looked for: plugins.path, $TIERD_PLUGIN_PATH, the folder beside the program.
PluginPath plugin_path(const Config& config);

// The plugin that a table of the configuration names, and what it is told. Errors name file or key.
Result<StrategyChoice> choose_strategy(const PluginPath& path, std::string_view kind,
                                       const StrategyConfig& strategy);

// All four.
Result<StrategyChoices> choose_strategies(const Config& config);

// Those that the tables name as fallbacks, with their defaults; without a plugin where none is named.
Result<StrategyChoices> choose_fallbacks(const Config& config);

}  // namespace tierd
