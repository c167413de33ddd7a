// Supplies the results that only weights can give, when a run is played without them.
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
  // Returns whether the recording decides the active set of the site, whatever the predictor.
  virtual bool decides(SiteId site) const = 0;
  // Returns [rows x n_in] the input for a predictor that reads activations, in the present pass. Empty: the
  // predictor is not called, and the functions below return its answers.
  virtual std::span<const float> input(SiteId, const Pass&) { return {}; }
  // These concern the present pass of `site`: the predictor's answer for this site and its wishes for later
  // ones (checked, valid until the next call), the measured set, and the neurons that fired.
  virtual ActiveSet predicted(SiteId site, const Pass& pass) = 0;
  virtual const WishList& ahead(SiteId site) = 0;
  virtual ActiveSet measured(SiteId site) = 0;
  virtual Fired fired(SiteId site) = 0;
};

}  // namespace tierd
