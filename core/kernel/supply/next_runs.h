// Which runs of neurons the next transfers bring, of one site, or of some whose neurons of one number lie
// side by side in the file.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernel/site.h"
#include "core/kernel/supply/plan.h"
#include "core/kernel/supply/purpose.h"

namespace tierd {

// A site with a plan that is not done, its neurons in the order of their runs (Site::run).
struct NextRuns {
  Purpose purpose = {};
  EditionId edition = kNoEdition;
  Plan* plan = nullptr;
  size_t most = 0;  // neurons that may be taken
  size_t end = 0;   // in the plan: behind the last that was taken, set by take_runs

  std::span<const Planned> taken() const {
    return std::span(plan->neurons).subspan(plan->next, end - plan->next);
  }
  bool takes_streams() const;  // whether some of them pass through staging
};

// Takes whole runs of `in_run` numbers, the lowest first and of all sites together, as many as `most` of each
// and `most_units` of all allow, up to a run of which something is not yet where it comes from. The first run
// must fit.
void take_runs(std::span<NextRuns> asked, uint32_t in_run, size_t most_units);

}  // namespace tierd
