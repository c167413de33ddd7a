// What virtual time says of a configuration: how fast it would be on the described machine.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/run/runtime.h"

namespace tierd {

struct ForecastAsked {
  uint32_t prompt_tokens = 0;
  uint32_t decoded_tokens = 0;  // one at least; some of them say enough
};

// The time of a decode step in ns, after such a prompt, by the description that `config.machine` names.
// Nothing is read or computed, and no memory for weights is taken. Errors: those of plan_run and
// Runtime::create; unsupported where a predictor or a router looks at activations.
Result<double> forecast_step_ns(Config config, const RuntimeOptions& options, const ForecastAsked& asked);

}  // namespace tierd
