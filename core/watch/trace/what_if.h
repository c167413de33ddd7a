// Measures another policy on a recorded run: the kernel receives the recorded requests, with agents that
// answer at once. Without weights and waiting it makes thousands of steps a second.
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

// A request of the engine to the scheduler.
using Asked =
    std::variant<FillBegins, PackedPass, StepEnds, DrainBegins, SequenceBegins, SequenceEnds, RowsKept>;
// Returns all requests of a trace, in at most some 50 times the bytes of the file. Errors: of the trace;
// corrupt, naming an event with neurons that its site does not have; unsupported, if the budget changed.
Result<std::vector<Asked>> read_asked(TraceReader& trace);

struct WhatIf {
  uint64_t steps = 0;
  uint64_t decode_steps = 0;  // steps that did not bypass the caches
  uint64_t filled_bytes = 0;  // fetched before the first step
  // Counters of the decode steps alone. Reads end at once, so effects of the wall clock (whether a neuron
  // that was read ahead arrived in time) are not included.
  SchedulerCounters counters;
  uint64_t messages = 0;  // of all steps
  uint64_t ns = 0;        // duration of the measurement
};
// Repeats `asked` with other strategies or another budget. Error: plugin_fault.
Result<WhatIf> what_if(const TraceHeader& header, const std::vector<Asked>& asked,
                       const StrategyChoices& strategies, uint64_t arena_bytes);

}  // namespace tierd
