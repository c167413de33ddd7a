// tierd --plan of a mixture of experts. It compares whole experts (lossless) with experts cut into channels,
// of which a part is left out (ActiveFlow with Mixtral). Leaving out only attention inputs saves no read
// where memory holds the weights that every token uses. Channels of small experts make small reads, measured
// slower; those of large ones are faster in little memory (RESULTS.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/run/runtime.h"
#include "tools/lab/plan/plan_machine.h"

namespace tierd {

// `of` must be a plan of a mixture. Error: no_space for a budget without room for weights.
Result<nlohmann::json> find_mixture_plan(const RunPlan& of, const PlanMachine& machine);
std::string mixture_plan_text(const nlohmann::json& found);
// Returns whether a run that follows the plan cuts experts into channels. A given store keeps its cut.
bool takes_channels(const nlohmann::json& found);
// Returns the configuration with the found settings.
Config with_mixture_plan(Config config, const nlohmann::json& found);

// Configures experts to be fetched as the routers choose them, as configs/moe-streaming.toml does.
void stream_experts(Config& config);

}  // namespace tierd
