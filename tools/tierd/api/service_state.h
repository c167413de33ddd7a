// What the engine's thread says of itself between two steps, for whoever watches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/batcher.h"
#include "core/engine/engine.h"
#include "core/kernel/counters.h"
#include "core/kernel/site_use.h"
#include "core/message/counts.h"

namespace tierd {

struct ServiceState {
  Batcher::Counters texts;
  std::vector<Batcher::SequenceState> sequences;
  size_t waiting = 0;
  StepTimes prefill;
  StepTimes decode;
  SchedulerCounters scheduler;
  ReadCounts flash;
  uint64_t budget_bytes = 0;
  uint64_t used_bytes = 0;        // of it
  uint64_t pressure_shrinks = 0;  // of the budget, because memory was short
  uint64_t pressure_grows = 0;    // and because it was not any more
  std::vector<SiteUse> use;       // [sites]
  bool store_changed = false;     // somebody has replaced it
  // These are about the flash agent.
  uint32_t credits = 0;   // left
  uint64_t requests = 0;  // that wait for one
};

}  // namespace tierd
