// Checks plugins' answers before they are used: a wrong one is an error that names the plugin, never a crash.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "tierd/views.h"

namespace tierd {

// Checks that a list ascends strictly below `n`. Error: plugin_fault without origin.
Status check_neurons(std::span<const uint32_t> neurons, uint32_t n);
// Checks that all scores are finite. Error: plugin_fault without origin.
Status check_scores(std::span<const float> scores);

// Checks that each wish made at `site` names a site at the given distance, neurons and an edition of that
// site, and an existing memory. Error: plugin_fault without origin.
Status check_wishes(const WishList& wishes, SiteId site, const SiteTable& sites, const Topology& topology);
// Checks the wishes that a strategy made when its `function` was called. Error: plugin_fault; then the
// strategy is quarantined.
Status check_wishes(StrategyBase& strategy, const char* function, SiteId site, const SiteTable& sites,
                    const Topology& topology);
// Sets `neurons` to those of a checked wish: all `n` if it has no list.
void neurons_of(const WishList& wishes, const WishList::Wish& wish, uint32_t n,
                std::vector<uint32_t>& neurons);

// Neurons of an edition that a memory should hold, whichever pass uses them: ascending.
struct WantedNeurons {
  EditionId edition = kNoEdition;
  std::vector<uint32_t> neurons;
};
// Asks a cache which neurons it wants before the first step, or between two; none if it has no such function.
// `memory` is the cache's own. Error: plugin_fault.
Result<std::vector<WantedNeurons>> wanted_at_start(Strategy<tierd_cache_1>& cache,
                                                   std::span<const Edition> editions, const Memory& memory);
// As above, in a pass of `site` in which no unit computes from the memories that this one fetches from.
Result<std::vector<WantedNeurons>> wanted_meanwhile(Strategy<tierd_cache_1>& cache, SiteId site,
                                                    std::span<const Edition> editions, const Memory& memory);
// Asks the balancer in such a pass which neurons should get another home.
struct WantedHome {
  MemoryId memory = 0;  // of the unit that becomes the home
  WantedNeurons wanted;
};
Result<std::vector<WantedHome>> wanted_homes(Strategy<tierd_balancer_1>& balancer, SiteId site,
                                             std::span<const Edition> editions, const Topology& topology);

// Checks the split of `bytes` among the editions, `slots` [editions], that a cache's `function` returned:
// each at most `most` [editions], in sum at most `bytes`. Error: plugin_fault.
Status check_split(Strategy<tierd_cache_1>& cache, const char* function, const SiteTable& sites,
                   uint64_t bytes, std::span<const uint32_t> most, std::span<const uint32_t> slots);

// A cache's answer to `resize`.
struct ResizedCache {
  std::vector<uint32_t> slots;                 // [editions]
  std::vector<std::vector<uint32_t>> victims;  // [editions]
};
// Asks the cache for a resize to `bytes`; nothing of its memory is leased or pinned. Each edition may have
// `most` [editions] slots. Error: plugin_fault; then the only change is that the cache is quarantined.
Result<ResizedCache> resized(Strategy<tierd_cache_1>& cache, const SiteTable& sites,
                             const Residency& residency, uint64_t bytes, std::vector<uint32_t> most);

}  // namespace tierd
