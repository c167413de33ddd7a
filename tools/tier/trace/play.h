// Plays a recorded run on another machine: its steps in virtual time, with the recorded activity.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/report/figure.h"
#include "core/run/runtime.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// The mean of a token, unless the name says otherwise.
struct PlayedTimes {
  uint64_t steps = 0, tokens = 0;
  double seconds = 0, tokens_per_second = 0, compute_ms = 0, stall_ms = 0, wanted_bytes = 0;

  static constexpr auto figures() {
    using F = PlayedTimes;
    return std::tuple(
        Figure{&F::steps, "steps", Quantity::count, Adds::latest, "played"},
        Figure{&F::tokens, "tokens", Quantity::tokens, Adds::latest, "of all steps"},
        Figure{&F::seconds, "seconds", Quantity::seconds, Adds::latest, "of all steps"},
        Figure{&F::tokens_per_second, "tokens_per_second", Quantity::tokens_per_second, Adds::latest, "mean"},
        Figure{&F::compute_ms, "compute_ms", Quantity::ms, Adds::latest, "with a unit computing"},
        Figure{&F::stall_ms, "stall_ms", Quantity::ms, Adds::latest, "waiting for bytes"},
        Figure{&F::wanted_bytes, "wanted_bytes", Quantity::bytes, Adds::latest, "of flash"});
  }
};

struct PlayedFigures {
  std::string trace, machine, clock = "model", backend = "host";
  PlayedTimes prefill, decode;

  static constexpr auto figures() {
    using F = PlayedFigures;
    return std::tuple(Figure{&F::trace, "trace", Quantity::text, Adds::latest, "its path"},
                      Figure{&F::machine, "machine", Quantity::text, Adds::latest, "as it was named"},
                      Figure{&F::clock, "clock", Quantity::text, Adds::latest, "virtual time"},
                      Figure{&F::backend, "backend", Quantity::text, Adds::latest, "of the tiers"},
                      Figure{&F::prefill, "prefill", Quantity::parts, Adds::latest, "steps of prompts"},
                      Figure{&F::decode, "decode", Quantity::parts, Adds::latest, "steps of decoding"});
  }
};

// Plays the steps of the trace with the model and the strategies of `config`, on the machine that it names;
// nothing is read or computed. Results that would need weights (predictions from activations, routers'
// choices, measured contributions) come from the trace. Errors: those of the trace and of Runtime::create;
// invalid_argument for a trace of another model, or if no machine is named.
Result<PlayedFigures> play(TraceReader& trace, Config config, RuntimeOptions options);
std::string played_text(const PlayedFigures& played);

}  // namespace tierd
