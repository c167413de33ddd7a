// The loss of a configuration that tier-compare has measured. It is printed at the start, and a large one
// refuses the run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/run/run_plan.h"
#include "tools/tierd/arguments.h"

namespace tierd {

// The largest divergence in nats a token at which the text still counts as the model's.
inline constexpr double kMostDivergence = 0.1;

// Returns {"measured": the verdict or null, "unreadable": why a stored verdict cannot be read, or null,
// "command": the command that measures it}. Null for a configuration that loses nothing, and for a run that
// computes nothing.
nlohmann::json known_loss(const RunPlan& plan, const Arguments& arguments);

// Returns the text beside the label "loss" of a report: "KL 0.295 nats a token, …", "not measured: COMMAND
// measures it", or "unknown: …" for a verdict that cannot be read. Empty for null.
std::string loss_text(const nlohmann::json& loss);
// Returns the same as a separate line: "measured loss: KL 0.295 nats a token, …", "loss not measured: …".
std::string loss_line(const nlohmann::json& loss);

// Returns and prints the known loss of a run that is about to begin. Error without `--force`:
// invalid_argument for a verdict beyond kMostDivergence, which names that limit, and for a verdict that
// cannot be read.
Result<nlohmann::json> tell_loss(const RunPlan& plan, const Arguments& arguments);

}  // namespace tierd
