// Forecasts the speed of a configuration on the described machine, in virtual time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/run/runtime.h"

namespace tierd {

struct ForecastAsked {
  uint32_t prompt_tokens = 0;
  uint32_t warming_tokens = 0;  // tokens decoded before counting, so that caches are filled
  uint32_t decoded_tokens = 0;  // tokens counted, at least one; some of them suffice
  // At most so many further tokens, until two counts read equally much: caches that learn need some.
  uint32_t settling_tokens = 0;
};

// Means over the decode steps.
struct Forecast {
  double step_ns = 0;
  double flash_bytes = 0;               // read from the store
  std::vector<double> link_bytes = {};  // [links of the topology] bytes fetched over each
};

// Plays such a text with a new runtime that was made to be played (RuntimeOptions::play_on). Errors: those of
// Runtime::plays and Engine::step.
Result<Forecast> play(Runtime& runtime, const ForecastAsked& asked);

// Plays a configuration on the machine description that `config.machine` names. Reads and computes nothing,
// and allocates no memory for weights. Errors: those of read_machine, plan_run, Runtime::create and play.
Result<Forecast> forecast(Config config, const RuntimeOptions& options, const ForecastAsked& asked);

}  // namespace tierd
