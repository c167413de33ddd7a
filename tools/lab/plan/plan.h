// Finds sparsity, layer group, mask and cache for a budget, with the cost model of tools/lab/plan and the
// measured rates of this machine's disk and memory.
#pragma once

#include <optional>
#include <string>

#include "core/run/run_plan.h"
#include "tools/lab/plan/plan_figures.h"

namespace tierd {

// Values that a user gives in place of found ones. Each is at least 0 and below 1.
struct PlanAssumptions {
  std::optional<double> sparsity;    // else the share that the budget requires
  std::optional<double> hits;        // else the share of the channels in memory, as without locality
  std::optional<double> similarity;  // else SITE.ahead of the predictor's tables, or the paper's 0.8
  double least_gain = 0.05;          // groups grow while another layer gains at least this share
};

// Measures for about two seconds, with nothing else in flight. `of` is a plan of layout channel-group, or of
// a mixture in any layout; its budget, tables and store are those that the run will have. Errors: unsupported
// for another layout, no_space where not even one layer's channels fit, those of the measurements and of the
// predictor's tables.
Result<FoundPlan> find_plan(const RunPlan& of, const PlanAssumptions& assumed);

// Ends with the flags that tierd takes for the plan.
std::string plan_text(const FoundPlan& found);

}  // namespace tierd
