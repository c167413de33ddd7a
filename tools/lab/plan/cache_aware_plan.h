// What `--plan` says of a cache-aware mask, of dense models and of mixtures whose experts are in channels.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/run/run_plan.h"
#include "tools/lab/plan/cache_aware_cost.h"

namespace tierd {

// activeflow.toml has it, with what was measured; of a store without an order by rate nothing is read ahead.
inline constexpr double kMissingAhead = 0.5;

// A number of the predictor's settings.
double number_of(const std::vector<Setting>& settings, std::string_view key, double otherwise);

// Takes SITE.rates of the layer in the middle from the predictor's tables, where it has them; of experts
// those of the first.
Status read_rates(const RunPlan& plan, std::vector<ChannelOperator>& operators);

// Adds the cost, and what it was found for.
void add_cache_aware(nlohmann::json& found, const CacheAwareCost& cost, const CacheAwareRun& run);
std::string cache_aware_text(const nlohmann::json& found);
// "--set ...", the settings with which a run has the mask.
std::string cache_aware_settings_text(const nlohmann::json& found);
void set_cache_aware(Config& config, const nlohmann::json& found);

// Sets a key of a strategy over what the configuration says.
template <class T>
void put(std::vector<Setting>& settings, const std::string& key, T value) {
  std::erase_if(settings, [&](const Setting& setting) { return setting.key == key; });
  settings.push_back({key, std::move(value), "--plan"});
}

}  // namespace tierd
