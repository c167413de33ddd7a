// The loss of a configuration that tier-compare has measured. It is printed at the start, and a large one
// refuses the run.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/run/measured_loss.h"
#include "core/run/run_plan.h"
#include "tools/tierd/arguments.h"

namespace tierd {

// The largest divergence in nats a token at which the text still counts as the model's.
inline constexpr double kMostDivergence = 0.1;

struct KnownLoss {
  std::optional<MeasuredLoss> measured = {};
  std::string unreadable = {};  // why a stored verdict cannot be read
  std::string command = {};

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = KnownLoss;
    return std::tuple(
        Figure{&F::measured, "measured", parts, latest, "the verdict", kOrNull},
        Figure{&F::unreadable, "unreadable", text, latest, "why a kept verdict cannot be read", kOrNull},
        Figure{&F::command, "command", text, latest, "that measures it"});
  }
};

// Returns none for a configuration that loses nothing, and for a run that computes nothing.
std::optional<KnownLoss> known_loss(const RunPlan& plan, const Arguments& arguments);

// Returns the text beside the label "loss" of a report: "KL 0.295 nats a token, …", "not measured: COMMAND
// measures it", or "unknown: …" for a verdict that cannot be read.
std::string loss_text(const KnownLoss& loss);
// Returns the same as a separate line: "measured loss: KL 0.295 nats a token, …", "loss not measured: …".
std::string loss_line(const KnownLoss& loss);

// Returns and prints the known loss of a run that is about to begin. Error without `--force`:
// invalid_argument for a verdict beyond kMostDivergence, which names that limit, and for a verdict that
// cannot be read.
Result<std::optional<KnownLoss>> tell_loss(const RunPlan& plan, const Arguments& arguments);

}  // namespace tierd
