// tierd --plan: sparsity, layer group and cache for a budget, by the cost model of tools/lab/plan and what
// this machine's disk and memory are measured to give.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"

namespace tierd {

// Measures for about two seconds, with nothing else in flight. `of` is a plan of layout channel-group, or of
// a mixture in any layout; its budget, tables and store are those that the run will have. Errors: unsupported
// for another layout, no_space where not even one layer's channels fit, those of the measurements and of the
// predictor's tables.
Result<nlohmann::json> find_plan(const RunPlan& of);
std::string plan_text(const nlohmann::json& found);

// The configuration with what was found: the predictor's sparsity, the staging, and of a model that is no
// store the layers of a group.
Config with_plan(Config config, const nlohmann::json& found);

// The report's lines on it, once a run has shown what is true.
std::string planned_and_achieved(const nlohmann::json& found, double tokens_per_second);

}  // namespace tierd
