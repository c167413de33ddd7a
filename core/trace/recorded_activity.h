// What weights told in a recorded run, told again.
#pragma once

#include <vector>

#include "core/kernel/pass/recording.h"
#include "core/kernel/site.h"
#include "core/trace/recorded_pass.h"
#include "core/trace/what_if.h"

namespace tierd {

class RecordedActivity final : public Recording {
 public:
  // `sites` and `topology` are the trace's, and outlive this.
  RecordedActivity(const SiteTable& sites, const Topology& topology)
      : sites_(sites), passes_(sites.size(), nullptr), wishes_(sites, topology) {}

  // From here on the pass of its site is this one, which stays where it is.
  void begin(const AskedPass& pass) { passes_[pass.begins.site] = &pass; }

  bool decides(SiteId) const override { return false; }  // what a predictor said by itself, it says again
  ActiveSet predicted(SiteId site, const Pass&) override {
    const AskedPass* pass = passes_[site];
    if (pass == nullptr) return ActiveSet::all(sites_[site].n);
    return recorded_set(pass->activated ? &*pass->activated : nullptr, sites_, site, pass->begins.rows);
  }
  const WishList& ahead(SiteId site) override {
    const AskedPass* pass = passes_[site];
    return wishes_.of(pass != nullptr && pass->looked_ahead ? &*pass->looked_ahead : nullptr, site);
  }
  ActiveSet measured(SiteId site) override {
    const AskedPass* pass = passes_[site];
    return recorded_set(pass != nullptr && pass->measured ? &*pass->measured : nullptr, sites_, site);
  }

  Fired fired(SiteId site) override {
    const AskedPass* pass = passes_[site];
    return recorded_firing(pass != nullptr && pass->fired ? &*pass->fired : nullptr, sites_, site);
  }

 private:
  const SiteTable& sites_;
  std::vector<const AskedPass*> passes_;  // [sites] NULL: nothing is known
  RecordedWishes wishes_;
};

}  // namespace tierd
