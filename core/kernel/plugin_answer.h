// What plugins answer is checked before anything relies on it: a wrong answer is an error that names the
// plugin, never a crash.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "tierd/views.h"

namespace tierd {

// Whether a list ascends strictly below `n`. Error: plugin_fault without origin.
Status check_neurons(std::span<const uint32_t> neurons, uint32_t n);
// Whether all scores are finite. Error: plugin_fault without origin.
Status check_scores(std::span<const float> scores);

// Checks that each wish made at `site` is for a site that lies as far behind it as the wish says, for neurons
// and an edition of that site, and for a memory that there is. Error: plugin_fault without origin.
Status check_wishes(const WishList& wishes, SiteId site, const SiteTable& sites, const Topology& topology);
// Checks the wishes that a strategy made when its `function` was called. Error: plugin_fault; then the
// strategy is quarantined.
Status check_wishes(StrategyBase& strategy, const char* function, SiteId site, const SiteTable& sites,
                    const Topology& topology);
// The neurons that a sound one names, all `n` where it has no list, in place of `neurons`.
void neurons_of(const WishList& wishes, const WishList::Wish& wish, uint32_t n,
                std::vector<uint32_t>& neurons);

// What a memory should have, whichever pass uses it: ascending neurons of an edition.
struct WantedNeurons {
  EditionId edition = kNoEdition;
  std::vector<uint32_t> neurons;
};
// Asks a cache before the first step, or between two; one that does not say wants nothing. `memory` is the
// cache's own. Error: plugin_fault.
Result<std::vector<WantedNeurons>> wanted_at_start(Strategy<tierd_cache_1>& cache,
                                                   std::span<const Edition> editions, const Memory& memory);
// The same in a pass of `site` in which nobody computes from the memories that this one fetches from.
Result<std::vector<WantedNeurons>> wanted_meanwhile(Strategy<tierd_cache_1>& cache, SiteId site,
                                                    std::span<const Edition> editions, const Memory& memory);
// Asks the balancer in such a pass which neurons shall have another home.
struct WantedHome {
  MemoryId memory = 0;  // of a unit
  WantedNeurons wanted;
};
Result<std::vector<WantedHome>> wanted_homes(Strategy<tierd_balancer_1>& balancer, SiteId site,
                                             std::span<const Edition> editions, const Topology& topology);

// How a cache splits `bytes` among the editions, `slots` [editions], as its `function` answered: at most
// `most` [editions] each, all together no more than there is. Error: plugin_fault.
Status check_split(Strategy<tierd_cache_1>& cache, const char* function, const SiteTable& sites,
                   uint64_t bytes, std::span<const uint32_t> most, std::span<const uint32_t> slots);

// A cache's answer to another size.
struct ResizedCache {
  std::vector<uint32_t> slots;                 // [editions]
  std::vector<std::vector<uint32_t>> victims;  // [editions]
};
// Asks it; nothing of its memory is leased or pinned. Each edition may have `most` [editions] slots. Error:
// plugin_fault; then nothing has changed but that the cache is quarantined.
Result<ResizedCache> resized(Strategy<tierd_cache_1>& cache, const SiteTable& sites,
                             const Residency& residency, uint64_t bytes, std::vector<uint32_t> most);

}  // namespace tierd
