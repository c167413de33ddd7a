// One run on the terminal: a prompt, its text, a report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/run/runtime.h"
#include "core/text/tokenizer.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/reload.h"

namespace tierd {

// Returns the program's exit status; what is wrong has been said. `found`: the plan to compare the run with,
// or NULL.
int run_on_terminal(const Arguments& arguments, Reload& reload, RunPlan plan, RuntimeOptions options,
                    const Tokenizer& tokenizer, const nlohmann::json* found);

}  // namespace tierd
