// In which order neurons of a summed site are asked for that are not here.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel/admission.h"
#include "core/kernel/site.h"

namespace tierd {

// Runs are computed in their order, each when it is whole. What a run lets stream by is one read into one
// block, whatever is kept between (a read takes whole runs), and reads start in this order, so that no pass
// waits for ever. Let r be the first run of which something is missing. If all of it was asked for, it will
// land. If not, the plan goes on with r, the reads of the plan so far brought earlier runs alone, and those
// were handed out: their blocks come back. Whatever else holds blocks was read ahead, for this site or a
// later one, which leaves a block to the demand at any time. What is kept needs no block, and may come
// earlier: with a neuron of which it is the closest friend.
class RunOrder {
 public:
  // `sites` outlives this.
  explicit RunOrder(const std::vector<Site>& sites);

  // Of a plan that nothing was taken from.
  void sort(SiteId site, Plan& plan);

 private:
  const std::vector<Site>& sites_;
  // Of one call, kept for their memory.
  std::vector<uint8_t> kept_;  // by neuron; nothing between two calls
  std::vector<Planned> ordered_;
};

}  // namespace tierd
