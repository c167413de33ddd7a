// tierd --plan of a mixture of experts: whole experts, lossless, beside experts in channels of which a part
// is left out (ActiveFlow with Mixtral). Leaving inputs of attention alone out saves no reading where what
// every token uses is in memory. Channels of small experts are small reads, and measured slower; those of
// large ones are faster where memory holds few experts (tests/bench/RESULTS.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"
#include "tools/lab/plan/plan_machine.h"

namespace tierd {

// `of` is a plan of a mixture. Errors: no_space where the budget does not hold what no weight takes.
Result<nlohmann::json> find_mixture_plan(const RunPlan& of, const PlanMachine& machine);
std::string mixture_plan_text(const nlohmann::json& found);
// Whether a run that follows the plan has experts in channels. A store that is given stays as it is cut.
bool takes_channels(const nlohmann::json& found);
// The configuration with what was found.
Config with_mixture_plan(Config config, const nlohmann::json& found);

// Has experts fetched as the routers choose them, as configs/moe-streaming.toml does.
void stream_experts(Config& config);

}  // namespace tierd
