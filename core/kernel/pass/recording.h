// It stands in place of what only weights can tell, when a run is played without them.
#pragma once

#include <span>

#include "core/kernel/active_set.h"
#include "core/kernel/observer.h"
#include "core/kernel/site.h"
#include "core/kernel/wish_list.h"

namespace tierd {

class Recording {
 public:
  virtual ~Recording() = default;
  // Whether this says what is active there whatever the predictor is, as one would that reads activations.
  virtual bool decides(SiteId site) const = 0;
  // [rows x n_in] what a predictor that reads activations shall look at in the present pass; empty: it is not
  // asked, and the following say what it would have said.
  virtual std::span<const float> input(SiteId, const Pass&) { return {}; }
  // These are about the present pass of `site`: what a predictor that reads activations said of this
  // site and of later ones (sound, alive until the next call), what was measured, and what fired.
  virtual ActiveSet predicted(SiteId site, const Pass& pass) = 0;
  virtual const WishList& ahead(SiteId site) = 0;
  virtual ActiveSet measured(SiteId site) = 0;
  virtual Fired fired(SiteId site) = 0;
};

}  // namespace tierd
