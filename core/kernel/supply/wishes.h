// What later passes will want in one memory: admitted, and not asked for yet.
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

// A wish names neurons that a later step will use. Where sites have their neurons of one number side by side
// in the file (layer groups), one wish names those of several sites: one read fetches them for all.
struct Wish {
  uint32_t step = 0;
  std::vector<FetchList> parts;

  bool done() const { return std::ranges::all_of(parts, &FetchList::done); }
};

class Wishes {
 public:
  // Those that are worked off lie in front.
  std::deque<Wish>& all() { return wishes_; }
  // What is left of the wish for this site, edition and step, which is one no more.
  FetchList take(SiteId site, EditionId edition, uint32_t step);
  // Takes out of that wish what is `wanted`, and appends it.
  void withdraw(SiteId site, EditionId edition, uint32_t step, const ActiveSet& wanted,
                std::vector<ToFetch>& withdrawn);
  // Forgets those of this step for earlier sites, which it has passed over; `dropped` as below.
  using Dropped = std::function<void(FetchList& list)>;
  void drop_passed(SiteId site, uint32_t step, const Dropped& dropped);
  // Whether a neuron with a leased slot waits in a wish: the lease is the caller's then.
  bool claim(EditionId edition, uint32_t neuron);
  // Forgets wishes of steps up to this one, having shown `dropped` what is left of them.
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
