// Computes which experts of a recorded routing caches would have kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/watch/trace/weightless.h"
#include "tools/lab/activity/routing.h"

namespace tierd {

struct ExpertCacheOptions {
  std::vector<uint32_t> memory = {10, 25, 50, 75};  // room, in percent of each layer's experts
  // In the syntax of `tier-trace what-if`: "cache.name=lru". Empty: our own caches.
  std::vector<std::string> caches;
};

// For each share of memory returns the hit rate of every cache, played through the serving kernel, with
// references: `random` (that share itself), `static hindsight` (the most often chosen experts of the whole
// text) and `best possible` (the expert that is chosen again last, or never, is evicted or not kept: no cache
// can do better). Each layer has room of its own. Errors: invalid_argument, plugin_fault.
Result<nlohmann::json> expert_caches(const Routing& routing, const ExpertCacheOptions& options,
                                     const ChooseStrategy& choose);
std::string expert_caches_text(const nlohmann::json& result);

// The experts that the tokens chose in one layer, in the order of the tokens; each list belongs to a Routing.
using LayerChoices = std::vector<const std::vector<uint32_t>*>;

// Returns for one layer with room for `slots` how many of the chosen experts were resident.
uint64_t best_possible_hits(const LayerChoices& choices, uint32_t slots);

}  // namespace tierd
