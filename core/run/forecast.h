// What virtual time says of a configuration: how fast it would be on the described machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/run/runtime.h"

namespace tierd {

struct ForecastAsked {
  uint32_t prompt_tokens = 0;
  uint32_t warming_tokens = 0;  // decoded before anything is counted, so that caches have filled
  uint32_t decoded_tokens = 0;  // one at least; some of them say enough
  // At most so many tokens more, until two runs of decoded tokens in turn read equally much: caches that
  // learn take some.
  uint32_t settling_tokens = 0;
};

// Means over the decode steps.
struct Forecast {
  double step_ns = 0;
  double flash_bytes = 0;               // read from the store
  std::vector<double> link_bytes = {};  // [links of the topology] fetched over each
};

// Plays such a text with a runtime that was made to be played (RuntimeOptions::play_on) and has done nothing
// yet. Errors: those of Runtime::plays and Engine::step.
Result<Forecast> play(Runtime& runtime, const ForecastAsked& asked);

// The same for a configuration, by the description that `config.machine` names. Nothing is read or computed,
// and no memory for weights is taken. Errors: those of read_machine, plan_run, Runtime::create and play.
Result<Forecast> forecast(Config config, const RuntimeOptions& options, const ForecastAsked& asked);

}  // namespace tierd
