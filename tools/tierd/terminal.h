// One run on the terminal: a prompt, its text, a report.
#pragma once

#include "core/text/tokenizer.h"
#include "tools/assembly/runtime.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/reload.h"

namespace tierd {

// Returns the program's exit status; what is wrong has been said.
int run_on_terminal(const Arguments& arguments, Reload& reload, RunPlan plan, const RuntimeOptions& options,
                    const Tokenizer& tokenizer);

}  // namespace tierd
