// The state of the engine's thread between two steps, copied for /slots, /metrics and /v1/tiers.
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
#include "tools/tierd/tier_figures.h"

namespace tierd {

struct ServiceState {
  Batcher::Counters texts;
  std::vector<Batcher::SequenceState> sequences;
  size_t waiting = 0;
  StepTimes prefill;
  StepTimes decode;
  SchedulerCounters scheduler;
  ReadCounts flash;
  std::vector<ServedTier> tiers;  // with a memory, from the lowest upwards, then the store's
  std::vector<TierLink> links;
  std::optional<EnergyTotals> energy;  // empty: the power of the machine is not known
  uint64_t pressure_shrinks = 0;  // times that the lowest tier's budget was lowered because memory was short
  uint64_t pressure_grows = 0;    // times that it was raised again
  std::vector<SiteUse> use;       // [sites]
  Losses losses;
  bool store_changed = false;  // the store's files were replaced
  std::string quarantined;     // why no text can be generated until a strategy is replaced; empty: texts can
  // The agent that reads the store:
  uint32_t credits = 0;   // not in use
  uint64_t requests = 0;  // waiting for a credit
};

}  // namespace tierd
