// What weights told in a recorded run, told again.
#pragma once

#include <vector>

#include "core/kernel/pass/recording.h"
#include "core/kernel/site.h"
#include "core/watch/trace/packed_pass.h"
#include "core/watch/trace/recorded_pass.h"

namespace tierd {

class RecordedActivity final : public Recording {
 public:
  // `sites` and `topology` are the trace's, and outlive this.
  RecordedActivity(const SiteTable& sites, const Topology& topology)
      : sites_(sites), passes_(sites.size(), nullptr), wishes_(sites, topology) {}

  // From here on the pass of its site is this one, which stays where it is. Returns what it holds, which
  // lives until the next call of any function.
  const AskedPass& begin(const PackedPass& pass) {
    passes_[pass.site()] = &pass;
    return *pass_of(pass.site());
  }

  bool decides(SiteId) const override { return false; }  // what a predictor said by itself, it says again
  ActiveSet predicted(SiteId site, const Pass&) override {
    const AskedPass* pass = pass_of(site);
    if (pass == nullptr) return ActiveSet::all(sites_[site].n);
    return recorded_set(pass->activated ? &*pass->activated : nullptr, sites_, site, pass->begins.rows);
  }
  const WishList& ahead(SiteId site) override {
    const AskedPass* pass = pass_of(site);
    return wishes_.of(pass != nullptr && pass->looked_ahead ? &*pass->looked_ahead : nullptr, site);
  }
  ActiveSet measured(SiteId site) override {
    const AskedPass* pass = pass_of(site);
    return recorded_set(pass != nullptr && pass->measured ? &*pass->measured : nullptr, sites_, site);
  }

  Fired fired(SiteId site) override {
    const AskedPass* pass = pass_of(site);
    return recorded_firing(pass != nullptr && pass->fired ? &*pass->fired : nullptr, sites_, site);
  }

 private:
  // NULL: nothing is known of the site.
  const AskedPass* pass_of(SiteId site) {
    if (passes_[site] == nullptr) return nullptr;
    if (passes_[site] != packed_) {
      packed_ = passes_[site];
      unpacked_ = packed_->unpack();
    }
    return &unpacked_;
  }

  const SiteTable& sites_;
  std::vector<const PackedPass*> passes_;  // [sites] NULL: nothing is known
  const PackedPass* packed_ = nullptr;     // the one that was unpacked last
  AskedPass unpacked_;
  RecordedWishes wishes_;
};

}  // namespace tierd
