// Plays a trace again: the same kernel and the same strategies, without weights, are told what the recorded
// ones were told, and must decide the same, byte for byte.
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
  uint64_t events = 0;  // found the same
  uint64_t steps = 0;
  SchedulerCounters counters;
  // The first decision that is another one: what was recorded, and what was decided now.
  std::optional<std::string> difference;
  bool interrupted = false;  // the recorded run was; it is the same up to there
  bool whole = true;         // false: the trace was cut off; it is the same up to there
};

// From the first event to the last. Errors: of the trace, or of a strategy that cannot be loaded.
Result<ReplayResult> replay(TraceReader& trace, const ChooseStrategy& choose);

}  // namespace tierd
