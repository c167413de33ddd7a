// Finds the passes in which no unit computes from the memories that another one fetches from, so that
// fetching delays no unit, and asks caches and balancer which neurons to fetch meanwhile (Hermes, section
// 4.3: hot neurons go to the GPU, and cold ones from DIMM to DIMM, while the GPU projects).
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
  // `plan` is that of the present pass, `supplies` [memories]. Everything referred to outlives this.
  IdleSources(const SiteTable& sites, Strategies& strategies, const Topology& topology, const PassPlan& plan,
              std::deque<Supply>& supplies);

  // To be called once the present pass, of `site`, is planned: each memory whose sources are idle begins to
  // fetch the neurons that its cache, and the balancer, want there. Error: plugin_fault.
  Status use(SiteId site, uint64_t now_ns);
  // Ends the window of the present pass, if there is one, once no run of the pass is under way. `units`
  // [units] of the topology.
  void end(uint64_t now_ns, std::span<const UnitPass> units);
  // Returns the counters, including moves that ended after the last window.
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
  std::vector<uint8_t> idle_;         // [memories] whether all its sources are idle in the present pass
  std::optional<uint64_t> begin_ns_;  // of the present pass, if a memory's sources are idle
  IdleTime time_;
};

}  // namespace tierd
