// What the engine's thread says of itself between two steps, for whoever watches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/counts.h"
#include "core/engine/batcher.h"
#include "core/engine/engine.h"
#include "core/kernel/counters.h"
#include "core/kernel/site_use.h"
#include "core/run/tiers.h"
#include "core/watch/energy/energy_ledger.h"

namespace tierd {

struct ServiceState {
  Batcher::Counters texts;
  std::vector<Batcher::SequenceState> sequences;
  size_t waiting = 0;
  StepTimes prefill;
  StepTimes decode;
  SchedulerCounters scheduler;
  ReadCounts flash;
  struct Tier {
    std::string name;
    uint64_t budget_bytes = 0;
    uint64_t used_bytes = 0;  // of it
    MemoryCounters counters;
  };
  std::vector<Tier> tiers;  // that have a memory, from the lowest upwards
  std::vector<TierLink> links;
  std::optional<EnergyTotals> energy;  // none: what the machine draws is not known
  uint64_t pressure_shrinks = 0;       // of the lowest tier's budget, because memory was short
  uint64_t pressure_grows = 0;         // and because it was not any more
  std::vector<SiteUse> use;            // [sites]
  Losses losses;
  bool store_changed = false;  // it was replaced
  std::string quarantined;     // why no text can be made before a strategy is replaced; empty: it can
  // These are about the agent that reads the store.
  uint32_t credits = 0;   // left
  uint64_t requests = 0;  // that wait for one
};

}  // namespace tierd
