// The active sets of this pass and of later ones: from the predictor, from the choice of the segment before,
// or, in a run without weights, from a recording. Checks the predictor's answers.
#pragma once

#include <cstdint>
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

  // Returns whether a pass must wait for the segment before, in order to read its output.
  bool waits_for_input(SiteId site) const { return sites_[site].flow.before && looks_at_input(site); }
  bool looks_at_input(SiteId site) const {
    return reads_x(site) || sites_[site].chosen() || (recording_ != nullptr && recording_->decides(site));
  }

  // The active set of a pass. Error: plugin_fault.
  Result<ActiveSet> active(SiteId site, const Pass& pass);

  // Returns the predictor's wishes for later sites, nearest first, checked; valid until the next call. Error:
  // plugin_fault.
  Result<const WishList*> ahead(SiteId site, const Pass& pass);

  // Reports to the predictor the predicted set, with the edition and unit of each neuron (see PassPlan; NULL:
  // not reported), and the true set; `measured` NULL: only `active` was computed. Error: plugin_fault.
  struct Outcome {
    const ActiveSet& active;
    const uint8_t* level_of = nullptr;
    const uint8_t* unit_of = nullptr;
    const ActiveSet* measured = nullptr;
  };
  Status tell(SiteId site, const Pass& pass, const Outcome& outcome);

  // Returns the input of the site, [rows x n_in], as the segment before has left it; valid until the next
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
