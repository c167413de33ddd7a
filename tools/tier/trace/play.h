// Plays a recorded run on another machine: its steps in virtual time, with the recorded activity.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/run/runtime.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// Plays the steps of the trace with the model and the strategies of `config`, on the machine that it names;
// nothing is read or computed. Results that would need weights (predictions from activations, routers'
// choices, measured contributions) come from the trace. Errors: those of the trace and of Runtime::create;
// invalid_argument for a trace of another model, or if no machine is named.
Result<nlohmann::json> play(TraceReader& trace, Config config, RuntimeOptions options);
std::string played_text(const nlohmann::json& played);

}  // namespace tierd
