// Closest friends: where a store has, behind each neuron of a site, a copy of another one (Site::friends). A
// read that brings a neuron may bring that copy with it for the price of its bytes alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/kernel/counters.h"
#include "core/kernel/site.h"

namespace tierd {

inline constexpr uint32_t kBehindNone = UINT32_MAX;

// Of one computing unit.
class Friends {
 public:
  // Everything referred to outlives this.
  Friends(const std::vector<Site>& sites, SchedulerCounters& counters);

  bool has(SiteId site) const { return !sites_[site].friends.empty(); }
  // One read brings all of `neurons`. behind[i]: from behind which of them neurons[i] is taken, of which it
  // is the closest friend; or kBehindNone: from its own place. Nobody is taken from behind one that is taken
  // so itself.
  void pair(SiteId site, std::span<const uint32_t> neurons, std::vector<uint32_t>& behind);

  // Whose copy would come along with a read, and from behind whom.
  struct Guest {
    uint32_t neuron;
    uint32_t behind;
  };
  // Of a read that `pair` has seen, by rising number, each once: friends that `absent` says are neither here
  // nor coming. Valid until the next call.
  std::span<const Guest> guests(SiteId site, std::span<const uint32_t> neurons,
                                std::span<const uint32_t> behind,
                                const std::function<bool(uint32_t)>& absent);

  // A guest of a canonical site is on its way; and what became of it: a step used these neurons, these left.
  void came(SiteId site, uint32_t neuron);
  void used(SiteId site, uint32_t neuron) {
    if (!waiting_[site].empty()) note_use(site, neuron);
  }
  void left(SiteId site, std::span<const uint32_t> neurons);

 private:
  void note_use(SiteId site, uint32_t neuron);

  const std::vector<Site>& sites_;
  SchedulerCounters& counters_;
  std::vector<std::vector<uint8_t>> waiting_;  // [sites][n] came as a guest, and nobody has used it yet
  // Of one function each.
  std::vector<uint8_t> listed_;  // by neuron; nothing between two calls
  std::vector<uint32_t> taken_;  // likewise kBehindNone
  std::vector<Guest> guests_;
};

}  // namespace tierd
