// A run on the terminal: a prompt, its text, a report.
#pragma once

#include <optional>

#include "core/model/text/tokenizer.h"
#include "core/run/runtime.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/known_loss.h"
#include "tools/tierd/reload.h"

namespace tierd {

// `loss`: the result of tell_loss. Returns the program's exit status. Errors have been printed.
int run_on_terminal(const Arguments& arguments, Reload& reload, RunPlan plan, RuntimeOptions options,
                    const Tokenizer& tokenizer, const std::optional<KnownLoss>& loss);

}  // namespace tierd
