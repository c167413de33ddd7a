// The wishes of one memory: neurons that later passes will use, admitted and not fetched yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/kernel/active_set.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/fetch_list.h"

namespace tierd {

// The neurons that one call has named for a later pass. Where neurons of one number of several sites are
// contiguous in the file (layer groups), a wish has a part for each site: one read fetches them for all.
struct Wish {
  uint32_t step = 0;
  std::vector<FetchList> parts;

  bool done() const { return std::ranges::all_of(parts, &FetchList::done); }
};

class Wishes {
 public:
  // All wishes, in the order in which they are worked off.
  std::deque<Wish>& all() { return wishes_; }
  // Removes the part for this site, edition and step, and returns its neurons that no transfer has taken.
  FetchList take(SiteId site, EditionId edition, uint32_t step);
  // Removes the neurons that are `wanted` from that part, and appends them to `withdrawn`.
  void withdraw(SiteId site, EditionId edition, uint32_t step, const ActiveSet& wanted,
                std::vector<ToFetch>& withdrawn);
  // Removes the parts of this step for earlier sites, which it has passed, having shown them to `dropped`.
  using Dropped = std::function<void(FetchList& list)>;
  void drop_passed(SiteId site, uint32_t step, const Dropped& dropped);
  // Removes a neuron with a leased slot, and returns whether a wish had it: the lease is the caller's then.
  bool claim(EditionId edition, uint32_t neuron);
  // Removes the wishes of steps up to this one, having shown their parts to `dropped`.
  void drop_until(uint32_t step, const Dropped& dropped);

 private:
  struct Found {
    Wish* wish;
    std::vector<FetchList>::iterator part;
  };
  std::optional<Found> find(SiteId site, EditionId edition, uint32_t step);

  std::deque<Wish> wishes_;
};

}  // namespace tierd
