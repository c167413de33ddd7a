// What another policy would have done with a recorded run: the kernel is asked what it was asked then, in
// front of agents that answer at once. No weights, no waiting: thousands of steps a second.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/pass/scheduler.h"
#include "core/watch/trace/event.h"
#include "core/watch/trace/packed_pass.h"
#include "core/watch/trace/reader.h"
#include "core/watch/trace/weightless.h"

namespace tierd {

// A question of the engine to the scheduler.
using Asked =
    std::variant<FillBegins, PackedPass, StepEnds, DrainBegins, SequenceBegins, SequenceEnds, RowsKept>;
// Returns what it asked in a whole trace, which takes at most some 50 times the bytes of the file. Errors: of
// the trace; corrupt, naming an event that lists neurons which its site does not have; unsupported, where the
// budget changed.
Result<std::vector<Asked>> read_asked(TraceReader& trace);

struct WhatIf {
  uint64_t steps = 0;
  uint64_t decode_steps = 0;  // those that did not go past the caches
  uint64_t filled_bytes = 0;  // brought in before the first step
  // These counters cover the decode steps alone. Reads end at once: what the wall clock decides (whether a
  // neuron that was read ahead was here in time) is not in them.
  SchedulerCounters counters;
  uint64_t messages = 0;  // of all steps
  uint64_t ns = 0;        // that all of this took
};
// Errors: plugin_fault.
Result<WhatIf> what_if(const TraceHeader& header, const std::vector<Asked>& asked,
                       const StrategyChoices& strategies, uint64_t arena_bytes);

}  // namespace tierd
