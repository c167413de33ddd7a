// Passes the wishes of predictors and caches for later sites to the supplies that fetch the neurons, and
// counts afterwards how many were right.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/pass/pass_plan.h"
#include "core/kernel/placement.h"
#include "core/kernel/site.h"
#include "core/kernel/site_use.h"
#include "core/kernel/supply/supply.h"
#include "tierd/views.h"

namespace tierd {

class LookAhead {
 public:
  // `plan` gives the edition in which a neuron would be computed, `placement` the unit that is its home,
  // `supplies` [memories]. Everything referred to outlives this.
  LookAhead(const SiteTable& sites, PassPlan& plan, const Placement& placement, const Topology& topology,
            std::deque<Supply>& supplies);

  // Has the supplies read ahead the neurons of `wishes`, which were made at `site` in `step` and checked.
  // Wishes that name no memory go to `own`, or, if that is the store, to the memory that each neuron is
  // computed from. A second wish for the same later pass, memory and edition is ignored, whichever strategy
  // made the first; a wish that names no edition covers all editions. With `bypass` the caches are not asked.
  // Error: plugin_fault.
  Status wish(SiteId site, uint32_t step, const WishList& wishes, MemoryId own, bool bypass);
  // Counts in `use` how many neurons of a pass that uses `active` were on the latest list for that pass.
  void count(SiteId site, uint32_t step, const ActiveSet& active, SiteUse& use);
  // Accepts a wish for every later pass again, after all reads ahead were given up.
  void forget();

 private:
  bool take(SiteId site, EditionId named, uint64_t when, MemoryId memory);
  Status add(SiteId site, EditionId edition, MemoryId memory, uint32_t step, bool bypass);
  void add(SiteId site, EditionId edition, MemoryId memory, std::span<const uint8_t> level_of, size_t level);
  Status pass_on(bool bypass);

  const SiteTable& sites_;
  PassPlan& plan_;
  const Placement& placement_;
  const Topology& topology_;
  std::deque<Supply>& supplies_;
  std::vector<std::vector<uint64_t>> wished_;  // [memories][editions] one past the latest step with a wish
  std::vector<uint8_t> takes_;                 // [memories] whether the present wish is for it
  // [sites] the latest wish for it that was a list, and its step; counted when that step comes.
  struct Foreseen {
    uint32_t step;
    std::vector<uint32_t> neurons;
  };
  std::vector<Foreseen> foreseen_;
  // Neurons of one later pass and edition, by the memory that fetches them. All that are collected belong to
  // one step and one kind of memory, and their editions are contiguous.
  struct Later {
    SiteId site;
    EditionId edition;
    std::vector<std::vector<uint32_t>> neurons;  // [memories]
  };
  std::vector<Later> later_;
  std::vector<Supply::Wished> wanted_;  // the wishes for one memory, from `later_`
  uint32_t step_ = 0;                   // of `later_`
  MemoryId memory_ = kStore;            // to fetch into; the store: the memory that computes them
  std::vector<uint32_t> neurons_;       // of one wish
  std::vector<float> scores_;           // likewise
};

}  // namespace tierd
