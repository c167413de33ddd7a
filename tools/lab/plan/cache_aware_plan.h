// The part of a plan on a cache-aware mask, for dense models and mixtures with experts in channels.
#pragma once

#include <string>
#include <vector>

#include "core/run/run_plan.h"
#include "tools/lab/plan/cache_aware_cost.h"
#include "tools/lab/plan/plan_figures.h"

namespace tierd {

// missing_ahead of stores ordered by rate, as in activeflow.toml, which has the measurements.
inline constexpr double kMissingAhead = 0.5;

// Returns a number of the predictor's settings, or `otherwise`.
double number_of(const std::vector<Setting>& settings, std::string_view key, double otherwise);

// Reads SITE.rates of the middle layer, and of its first expert, from the predictor's tables into
// `operators`. Tables without them change nothing.
Status read_rates(const RunPlan& plan, std::vector<ChannelOperator>& operators);

// Adds the cost, and the settings that it was computed for.
void add_cache_aware(PlanFigures& found, const CacheAwareCost& cost, const CacheAwareRun& run);
std::string cache_aware_text(const DensePlan& found);
std::string cache_aware_text(const MixturePlan& found);
// Returns the mask's settings as flags: "--set ...".
std::string cache_aware_settings_text(const PlanFigures& found);

}  // namespace tierd
