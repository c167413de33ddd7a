// The plan of a mixture of experts. It compares whole experts (lossless) with experts cut into channels,
// of which a part is left out (ActiveFlow with Mixtral). Leaving out only attention inputs saves no read
// where memory holds the weights that every token uses. Channels of small experts make small reads, measured
// slower; those of large ones are faster in little memory (RESULTS.md).
#pragma once

#include <string>

#include "core/run/run_plan.h"
#include "tools/lab/plan/plan.h"
#include "tools/lab/plan/plan_machine.h"

namespace tierd {

// `of` must be a plan of a mixture. Error: no_space for a budget without room for weights.
Result<MixturePlan> find_mixture_plan(const RunPlan& of, const PlanAssumptions& assumed,
                                      const PlanMachine& machine);
std::string mixture_plan_text(const MixturePlan& found);

}  // namespace tierd
