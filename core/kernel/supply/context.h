// The memory that a supply fetches into, as all its parts see it.
#pragma once

#include "core/kernel/counters.h"
#include "core/kernel/memory.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/post/task.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"

namespace tierd {

// Everything referred to outlives the parts.
struct SupplyContext {
  MemoryId id;
  Dispatcher& dispatcher;
  const SiteTable& sites;
  const Topology& topology;
  Residency& residency;
  MemoryCounters& counters;
  Notice& changed;  // woken by each message that has ended

  const Memory& memory() const { return topology.memory(id); }
  bool is_computed_from() const { return topology.unit_of(id) != kNoUnit; }
};

}  // namespace tierd
