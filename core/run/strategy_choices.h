// Loads and checks the plugins that a configuration names.
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

// Returns the search path for plugins: plugins.path, $TIERD_PLUGIN_PATH, the folder beside the program.
PluginPath plugin_path(const Config& config);

// Returns the table of a cache: a tier's own, or, for an empty name, the common one.
std::string table_of_cache(const std::string& tier);

// A choice whose tensors are measured but not read yet, because the budget is not known.
struct ChosenStrategy {
  StrategyChoice choice;
  std::shared_ptr<const PluginTensorSource> tensors;  // may be NULL

  uint64_t table_bytes() const { return tensors ? tensors->bytes() : 0; }
};
struct ChosenStrategies {
  ChosenStrategy predictor, quantizer, cache, balancer;
  ChosenStrategy heat = {};                                // without a plugin: there is no separate one
  std::map<std::string, ChosenStrategy> tier_caches = {};  // of tiers with a cache of their own

  // Returns whether one of them keeps the neurons' heat.
  bool keep_heat() const;
  // Checks that their tensors may belong to this model. Error: that of PluginTensorFile::check_model.
  Status check_model(const ModelConfig& config) const;
  // Returns the sources and sizes of their tensors.
  std::vector<TableRequest> tables() const;

 private:
  std::vector<const ChosenStrategy*> all() const;
};

// Loads the plugin that a table of the configuration names, and reads its parameters. `kind`: as in plugins;
// `table`: "heat", which names a predictor, or "tiers.gpu.cache"; empty: the kind. `model`: the source of
// tensors for `tensors = "model"`; NULL: there is none. Errors name the file, or a key of the table.
Result<ChosenStrategy> choose_strategy(const PluginPath& path, std::string_view kind,
                                       const StrategyConfig& strategy,
                                       std::shared_ptr<const ModelTensors> model = nullptr,
                                       std::string_view table = {});

// Chooses all strategies, and the caches of tiers that name one.
Result<ChosenStrategies> choose_strategies(const Config& config,
                                           const std::shared_ptr<const ModelTensors>& model = nullptr);

// Returns the choice with its tensors read. Errors: those of PluginTensorSource.
Result<StrategyChoice> read_tensors(ChosenStrategy chosen);
Result<StrategyChoices> read_tensors(ChosenStrategies chosen);

// Returns a plugin's error with the model's path in place of each word MODEL, so that a user can type its
// commands as they are.
Error naming_model(Error error, const std::string& model);

// Loads the fallbacks that the tables name, with default parameters; without a plugin if none is named.
Result<StrategyChoices> choose_fallbacks(const Config& config);

}  // namespace tierd
