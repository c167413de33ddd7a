// Who is active in a pass, and who will be in later ones: asked of the predictor, read from what the segment
// before has chosen, or, in a run without weights, remembered. The predictor's answers are checked here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/memory.h"
#include "core/kernel/observer.h"
#include "core/kernel/pass/recording.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"

namespace tierd {

class Prediction {
 public:
  // `recording`: of a run without weights, or NULL. Everything referred to outlives this.
  Prediction(const Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies,
             const Topology& topology, Recording* recording);

  // Whether a pass must wait for the segment before, to look at what it leaves.
  bool waits_for_input(SiteId site) const { return sites_[site].flow.before && looks_at_input(site); }
  bool looks_at_input(SiteId site) const {
    return reads_x(site) || sites_[site].chosen() || (recording_ != nullptr && recording_->decides(site));
  }

  // The active set of a pass. Error: plugin_fault.
  Result<ActiveSet> active(SiteId site, const Pass& pass);

  // What later sites will want, nearest first, checked; lives until the next call. Error: plugin_fault.
  Result<const WishList*> ahead(SiteId site, const Pass& pass);

  // What was predicted, and in which editions and by whom it is computed (see PassPlan; NULL: not told); and
  // what of it was true, where `measured` NULL says that nothing but `active` is known. Error: plugin_fault.
  struct Outcome {
    const ActiveSet& active;
    const uint8_t* level_of = nullptr;
    const uint8_t* unit_of = nullptr;
    const ActiveSet* measured = nullptr;
  };
  Status tell(SiteId site, const Pass& pass, const Outcome& outcome);

  // [rows x n_in], what the site computes from, where the segment before has left it; lives until the next
  // call.
  const float* input_of(SiteId site, const Pass& pass);

 private:
  bool reads_x(SiteId site) const { return !strategies_.reads_x.empty() && strategies_.reads_x[site] != 0; }
  bool is_scored(SiteId site) const { return !strategies_.scored.empty() && strategies_.scored[site] != 0; }
  ActiveSet chosen(SiteId site, const Pass& pass);
  Result<ActiveSet> predicted(SiteId site, const Pass& pass);
  Result<const WishList*> ask_ahead(SiteId site, const Pass& pass);
  tierd_rows_view rows_of(SiteId site, const Pass& pass);
  const float* lines(const Pass& pass, UnitId unit, const ActivationPlace& place) const;
  template <class Ask>
  Status timed(SiteId site, const char* what, Ask ask);
  KernelObserver* observer() const { return dispatcher_.observer(); }

  const Dispatcher& dispatcher_;
  const SiteTable& sites_;
  Strategies& strategies_;
  const Topology& topology_;
  Recording* recording_;
  const WishList nothing_;
  // Each of these is filled in one function; they are members so that their memory is reused.
  std::vector<uint32_t> neurons_;
  std::vector<uint64_t> row_masks_;  // of an answer
  std::vector<float> scores_;        // likewise
  std::vector<float> x_;
};

}  // namespace tierd
