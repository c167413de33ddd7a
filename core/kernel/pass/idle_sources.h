// Finds the passes in which nobody computes from the memories that another one fetches from, so that fetching
// from there delays nobody, and asks caches and balancer what should be fetched meanwhile (Hermes,
// section 4.3: hot neurons go to the GPU, and cold ones from DIMM to DIMM, while the GPU projects).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/pass/idle_time.h"
#include "core/kernel/pass/pass_plan.h"
#include "core/kernel/pass/unit_pass.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/supply.h"

namespace tierd {

class IdleSources {
 public:
  // `plan` is that of the present pass, `supplies` are the memories'. Everything referred to outlives this.
  IdleSources(const SiteTable& sites, Strategies& strategies, const Topology& topology, const PassPlan& plan,
              std::deque<Supply>& supplies);

  // Once the present pass, which is of `site`, was planned: has each memory whose sources are idle fetch what
  // its cache, and the balancer, want there. Error: plugin_fault.
  Status use(SiteId site, uint64_t now_ns);
  // Ends the window of the present pass, if there is one, once nothing of the pass runs any more. `units`
  // [units] of the topology.
  void end(uint64_t now_ns, std::span<const UnitPass> units);
  // Returns what was counted so far, the moves included that ended after the last window.
  IdleCounters counters() const;

 private:
  bool are_idle(size_t memory) const;
  Status ask_caches(SiteId site);
  Status ask_balancer(SiteId site);

  const SiteTable& sites_;
  Strategies& strategies_;
  const Topology& topology_;
  const PassPlan& plan_;
  std::deque<Supply>& supplies_;
  std::vector<std::vector<UnitId>> sources_;  // [memories] units that compute from those with a link to it
  std::vector<uint8_t> idle_;                 // [memories] whether all of these are, in the present pass
  std::optional<uint64_t> begin_ns_;          // of the present pass, where one of them is
  IdleTime time_;
};

}  // namespace tierd
