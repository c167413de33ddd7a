// In place of what only weights can tell, when a run is played again without them.
#pragma once

#include "core/kernel/active_set.h"
#include "core/kernel/observer.h"
#include "core/kernel/site.h"
#include "core/kernel/wish_list.h"

namespace tierd {

class Recording {
 public:
  virtual ~Recording() = default;
  // These are about the present pass of `site`: what a predictor that reads activations said of this
  // site and of later ones (sound, alive until the next call), what was measured, and what fired.
  virtual ActiveSet predicted(SiteId site) = 0;
  virtual const WishList& ahead(SiteId site) = 0;
  virtual ActiveSet measured(SiteId site) = 0;
  virtual Fired fired(SiteId site) = 0;
};

}  // namespace tierd
