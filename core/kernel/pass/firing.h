// Tells the strategy that keeps the neurons' heat which of those that a pass has computed gave something, and
// asks it how hot they are then.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
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

  // Whether somebody wants to know it of this site, and it can tell.
  bool is_told(SiteId site) const { return strategies_.has_heat() && sites_[site].contribution.there(); }
  // After the present pass, which was computed with kTell or kMeasure. `knows_all`: what was not computed for
  // a row would have given nothing. Error: plugin_fault.
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
