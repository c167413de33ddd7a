// What caches would have kept of the experts that a routing asked for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/watch/trace/weightless.h"
#include "tools/tier/trace/routing.h"

namespace tierd {

struct ExpertCacheOptions {
  std::vector<uint32_t> memory = {10, 25, 50, 75};  // percent of each layer's experts that there is room for
  // As for `tier-trace what-if`: "cache.name=lru". Empty: those that we have.
  std::vector<std::string> caches;
};

// For each share of the memory the hit rate of every cache, played through the kernel that serves, and what
// to judge them by: `random` (that share itself), `static hindsight` (the most often chosen of the whole
// text) and `best possible` (whoever is chosen again last, or never, leaves or is not kept: no cache can do
// better). A layer's room is its own. Errors: invalid_argument, plugin_fault.
Result<nlohmann::json> expert_caches(const Routing& routing, const ExpertCacheOptions& options,
                                     const ChooseStrategy& choose);
std::string expert_caches_text(const nlohmann::json& result);

// The experts that the tokens chose of one layer, in the order of the tokens; each list belongs to a Routing.
using LayerChoices = std::vector<const std::vector<uint32_t>*>;

// Counts for one layer with room for `slots` how many of the chosen experts were there.
uint64_t best_possible_hits(const LayerChoices& choices, uint32_t slots);

}  // namespace tierd
