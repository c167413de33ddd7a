// tierd --plan: finds sparsity, layer group and cache for a budget, with the cost model of tools/lab/plan
// and the measured rates of this machine's disk and memory.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"

namespace tierd {

// Measures for about two seconds; no other reads may be in flight. `of` is a plan of layout channel-group, or
// of a mixture in any layout, with the budget, tables and store of the run. Errors: unsupported for another
// layout, no_space where one layer's channels do not fit, those of the measurements and of the predictor's
// tables.
Result<nlohmann::json> find_plan(const RunPlan& of);
std::string plan_text(const nlohmann::json& found);

// Returns the configuration with the found settings: the predictor's sparsity, the staging, and, for a model
// that is no store, the layers of a group.
Config with_plan(Config config, const nlohmann::json& found);

// Returns the report's lines on the plan, with the speed that the run achieved.
std::string planned_and_achieved(const nlohmann::json& found, double tokens_per_second);

}  // namespace tierd
