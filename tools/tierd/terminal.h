// A run on the terminal: a prompt, its text, a report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/model/text/tokenizer.h"
#include "core/run/runtime.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/known_loss.h"
#include "tools/tierd/reload.h"

namespace tierd {

// The parts of a report that are known before the run begins.
struct Foreknown {
  const nlohmann::json* plan = nullptr;  // the plan to compare the run with; NULL: no plan was requested
  std::optional<KnownLoss> loss = {};    // the result of tell_loss
};

// Returns the program's exit status. Errors have been printed.
int run_on_terminal(const Arguments& arguments, Reload& reload, RunPlan plan, RuntimeOptions options,
                    const Tokenizer& tokenizer, const Foreknown& known);

}  // namespace tierd
