// Plays a trace again: the same kernel and the same strategies, without weights, receive the recorded inputs,
// and must decide the same, byte for byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/kernel/pass/scheduler.h"
#include "core/watch/trace/reader.h"
#include "core/watch/trace/weightless.h"

namespace tierd {

struct ReplayResult {
  uint64_t events = 0;  // equal events
  uint64_t steps = 0;
  SchedulerCounters counters;
  // The first different decision: the recorded one and the present one.
  std::optional<std::string> difference;
  bool interrupted = false;  // the recorded run was interrupted; it is the same up to there
  bool whole = true;         // false: the trace was cut off; it is the same up to there
};

// Plays the trace from the first event to the last. Errors: of the trace, or of a strategy that cannot be
// loaded.
Result<ReplayResult> replay(TraceReader& trace, const ChooseStrategy& choose);

}  // namespace tierd
