// From what a configuration names to plugins that are loaded and checked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/engine/memory_plan.h"
#include "core/run/plugin_tensors.h"
#include "core/strategy/plugin_path.h"
#include "core/strategy/strategy_set.h"

namespace tierd {

// Where plugins are looked for: plugins.path, $TIERD_PLUGIN_PATH, the folder beside the program.
PluginPath plugin_path(const Config& config);

// The table of a cache: of one that the tier has of its own, or, where the name is empty, of all others.
std::string table_of_cache(const std::string& tier);

// A choice whose tensors are measured and not read yet, for want of a budget.
struct ChosenStrategy {
  StrategyChoice choice;
  std::shared_ptr<const PluginTensorSource> tensors;  // or none

  uint64_t table_bytes() const { return tensors ? tensors->bytes() : 0; }
};
struct ChosenStrategies {
  ChosenStrategy predictor, quantizer, cache, balancer;
  ChosenStrategy heat = {};                                // without a plugin: none of its own
  std::map<std::string, ChosenStrategy> tier_caches = {};  // of tiers that name one of their own

  // Whether one of them keeps the neurons' heat.
  bool keep_heat() const;
  // Whether their tensors may be about this model. Error: that of PluginTensorFile::check_model.
  Status check_model(const ModelConfig& config) const;
  // Where their tensors come from.
  std::vector<TableRequest> tables() const;

 private:
  std::vector<const ChosenStrategy*> all() const;
};

// The plugin that a table of the configuration names, and what it is told. `kind`: as plugins have it;
// `table`: "heat", which has a predictor, or "tiers.gpu.cache"; empty: the kind. `model`: whose tensors are
// given where the table says so; NULL: there is none. Errors name the file, or a key of the table.
Result<ChosenStrategy> choose_strategy(const PluginPath& path, std::string_view kind,
                                       const StrategyConfig& strategy,
                                       std::shared_ptr<const ModelTensors> model = nullptr,
                                       std::string_view table = {});

// All of them, and the caches of tiers that name one.
Result<ChosenStrategies> choose_strategies(const Config& config,
                                           const std::shared_ptr<const ModelTensors>& model = nullptr);

// The choice with its tensors. Errors: those of PluginTensorSource.
Result<StrategyChoice> read_tensors(ChosenStrategy chosen);
Result<StrategyChoices> read_tensors(ChosenStrategies chosen);

// Returns the error of a plugin with the path of the model in place of each word MODEL, so that commands in
// it can be typed as they stand.
Error naming_model(Error error, const std::string& model);

// Those that the tables name as fallbacks, with their defaults; without a plugin where none is named.
Result<StrategyChoices> choose_fallbacks(const Config& config);

}  // namespace tierd
