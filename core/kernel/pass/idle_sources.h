// Finds the passes in which nobody computes from the memories that another one fetches from, so that fetching
// from there delays nobody, and asks caches and balancer what should be fetched meanwhile (Hermes,
// section 4.3: hot neurons go to the GPU, and cold ones from DIMM to DIMM, while the GPU projects).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/pass/pass_plan.h"
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
  Status use(SiteId site);

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
};

}  // namespace tierd
