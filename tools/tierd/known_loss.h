// The loss of a configuration as far as tier-compare has measured it: said at the start, and a reason not to
// start.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/run/run_plan.h"
#include "tools/tierd/arguments.h"

namespace tierd {

// Text of a configuration that diverges by more, in nats a token, is not the model's any more.
inline constexpr double kMostDivergence = 0.1;

// {"measured": the verdict or null, "unreadable": why a verdict that was kept cannot be read, or null,
// "command": what measures it}; null for a configuration that loses nothing, and for a run that computes
// nothing.
nlohmann::json known_loss(const RunPlan& plan, const Arguments& arguments);

// Returns what stands beside the label "loss" of a report: "KL 0.295 nats a token, …", "not measured: COMMAND
// measures it", or "unknown: …" where a verdict cannot be read; empty for null.
std::string loss_text(const nlohmann::json& loss);
// Returns the same as a line by itself: "measured loss: KL 0.295 nats a token, …", "loss not measured: …".
std::string loss_line(const nlohmann::json& loss);

// Returns what is known of the loss of a run that is about to begin, and says it. Error: invalid_argument,
// unless
// --force is given, for a verdict beyond kMostDivergence, with the limit, and for one that cannot be read.
Result<nlohmann::json> tell_loss(const RunPlan& plan, const Arguments& arguments);

}  // namespace tierd
