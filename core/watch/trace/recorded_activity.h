// Returns the recorded results of a run, in place of weights.
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

  // Makes `pass`, which must outlive its use, the present pass of its site. Returns its content, valid until
  // the next call of any function.
  const AskedPass& begin(const PackedPass& pass) {
    passes_[pass.site()] = &pass;
    return *pass_of(pass.site());
  }

  bool decides(SiteId) const override { return false; }  // predictors without activations are called again
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
  // Returns NULL if the site has no recorded pass.
  const AskedPass* pass_of(SiteId site) {
    if (passes_[site] == nullptr) return nullptr;
    if (passes_[site] != packed_) {
      packed_ = passes_[site];
      unpacked_ = packed_->unpack();
    }
    return &unpacked_;
  }

  const SiteTable& sites_;
  std::vector<const PackedPass*> passes_;  // [sites] NULL: no recorded pass
  const PackedPass* packed_ = nullptr;     // the pass in `unpacked_`
  AskedPass unpacked_;
  RecordedWishes wishes_;
};

}  // namespace tierd
