// Computes which experts of a recorded routing caches would have kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/figure.h"
#include "core/watch/trace/weightless.h"
#include "tools/lab/activity/routing.h"

namespace tierd {

struct ExpertCacheOptions {
  std::vector<uint32_t> memory = {10, 25, 50, 75};  // room, in percent of each layer's experts
  // In the syntax of `tier-trace what-if`: "cache.name=lru". Empty: our own caches.
  std::vector<std::string> caches;
};

struct ExpertCacheRow {
  uint32_t memory_percent = 0;
  std::string policy;
  uint64_t hits = 0, misses = 0;
  double hit_rate = 0;
  std::optional<uint64_t> evictions;

  static constexpr auto figures() {
    using F = ExpertCacheRow;
    return std::tuple(
        Figure{&F::memory_percent, "memory_percent", Quantity::percent, Adds::latest, "of a layer's experts"},
        Figure{&F::policy, "policy", Quantity::text, Adds::latest, "a cache, or a reference"},
        Figure{&F::hits, "hits", Quantity::count, Adds::latest, "of the chosen experts"},
        Figure{&F::misses, "misses", Quantity::count, Adds::latest, "of the chosen experts"},
        Figure{&F::hit_rate, "hit_rate", Quantity::share, Adds::latest, "of the chosen experts"},
        Figure{&F::evictions, "evictions", Quantity::count, Adds::latest, "of a cache that was played"});
  }
};

struct ExpertCacheFigures {
  std::string model;
  uint32_t layers = 0, experts = 0;
  uint64_t prompt_tokens = 0, tokens = 0;
  double chosen = 0;
  std::vector<ExpertCacheRow> rows;

  static constexpr auto figures() {
    using F = ExpertCacheFigures;
    return std::tuple(
        Figure{&F::model, "model", Quantity::text, Adds::latest, "as the routing names it"},
        Figure{&F::layers, "layers", Quantity::count, Adds::latest, "with experts"},
        Figure{&F::experts, "experts", Quantity::count, Adds::latest, "of a layer"},
        Figure{&F::prompt_tokens, "prompt_tokens", Quantity::tokens, Adds::latest, "left out"},
        Figure{&F::tokens, "tokens", Quantity::tokens, Adds::latest, "generated"},
        Figure{&F::chosen, "chosen", Quantity::count, Adds::latest, "experts, by a token in a layer"},
        Figure{&F::rows, "rows", Quantity::parts, Adds::latest, "by memory and policy"});
  }
};

// For each share of memory returns the hit rate of every cache, played through the serving kernel, with
// references: `random` (that share itself), `static hindsight` (the most often chosen experts of the whole
// text) and `best possible` (the expert that is chosen again last, or never, is evicted or not kept: no cache
// can do better). Each layer has room of its own. Errors: invalid_argument, plugin_fault.
Result<ExpertCacheFigures> expert_caches(const Routing& routing, const ExpertCacheOptions& options,
                                         const ChooseStrategy& choose);
std::string expert_caches_text(const ExpertCacheFigures& result);

// The experts that the tokens chose in one layer, in the order of the tokens; each list belongs to a Routing.
using LayerChoices = std::vector<const std::vector<uint32_t>*>;

// Returns for one layer with room for `slots` how many of the chosen experts were resident.
uint64_t best_possible_hits(const LayerChoices& choices, uint32_t slots);

}  // namespace tierd
