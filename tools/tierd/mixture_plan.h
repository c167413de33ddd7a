// tierd --plan of a mixture of experts: whole experts, lossless. Leaving inputs of attention out saves no
// reading where what every token uses is in memory, and experts in channels measured slower
// (tests/bench/RESULTS.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"
#include "tools/tierd/plan_machine.h"

namespace tierd {

// `of` is a plan of a mixture. Errors: no_space where the budget does not hold what no weight takes.
Result<nlohmann::json> find_mixture_plan(const RunPlan& of, const PlanMachine& machine);
std::string mixture_plan_text(const nlohmann::json& found);

// Has experts fetched as the routers choose them, as configs/moe-streaming.toml does.
void stream_experts(Config& config);

}  // namespace tierd
