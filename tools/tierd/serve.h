// The server: one thread speaks HTTP, this one runs the engine.
#pragma once

#include "core/model/text/tokenizer.h"
#include "core/run/runtime.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/reload.h"

namespace tierd {

// Serves until SIGINT or SIGTERM: what is being written then is finished, within half a minute; a second one
// ends it at once. Returns the program's exit status; what is wrong has been said.
int serve(const Arguments& arguments, Reload& reload, RunPlan plan, RuntimeOptions options,
          const Tokenizer& tokenizer);

}  // namespace tierd
