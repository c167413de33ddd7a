// The server: an HTTP thread, and the calling thread, which runs the engine.
#pragma once

#include "core/model/text/tokenizer.h"
#include "core/run/runtime.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/reload.h"

namespace tierd {

// Serves until SIGINT or SIGTERM. Texts in progress are then finished, within half a minute; a second signal
// ends the server at once. Returns the program's exit status. Errors have been printed.
int serve(const Arguments& arguments, Reload& reload, RunPlan plan, RuntimeOptions options,
          const Tokenizer& tokenizer);

}  // namespace tierd
