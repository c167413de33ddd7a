// Reports the fired neurons of a pass to the strategy that keeps their heat, and then asks for the heat.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/observer.h"
#include "core/kernel/pass/pass_plan.h"
#include "core/kernel/pass/recording.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"

namespace tierd {

class Firing {
 public:
  // `plan` is that of the present pass; `recording` NULL: agents compute. Everything referred to outlives
  // this.
  Firing(const Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies,
         const Topology& topology, const PassPlan& plan, Recording* recording);

  // Returns whether a strategy keeps heat and the site's computation shows which neurons fire.
  bool is_told(SiteId site) const { return strategies_.has_heat() && sites_[site].contribution.there(); }
  // Reports the present pass, which was computed with kTell or kMeasure. `knows_all`: neurons that were not
  // computed for a row would not have fired in it. Error: plugin_fault.
  Status tell(SiteId site, const Pass& pass, bool knows_all);

 private:
  void count(SiteId site, uint32_t rows);
  Status ask_heat(SiteId site);
  SiteId next_told(SiteId site) const;

  const Dispatcher& dispatcher_;
  const SiteTable& sites_;
  Strategies& strategies_;
  const Topology& topology_;
  const PassPlan& plan_;
  Recording* const recording_;
  Fired fired_;                   // of the present pass
  std::vector<uint32_t> counts_;  // [n] of its site
};

}  // namespace tierd
