// Figures of tiers that the report of a run and the server share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/counters.h"
#include "core/run/tiers.h"

namespace tierd {

struct NeuronFigures {
  uint64_t hits = 0, staged = 0, misses = 0, evictions = 0;
  std::optional<uint64_t> wasted = {}, prefetch_failed = {}, retries = {};
  std::optional<uint64_t> resident_bytes = {}, streamed_bytes = {}, measured_bytes = {};

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = NeuronFigures;
    return std::tuple(
        Figure{&F::hits, "hits", count, sum, "that were resident when requested"},
        Figure{&F::staged, "staged", count, sum, "that were read ahead: landed or on their way"},
        Figure{&F::misses, "misses", count, sum, "that were neither"},
        Figure{&F::evictions, "evictions", count, sum, "that were dropped"},
        Figure{&F::wasted, "wasted", count, sum, "that were read ahead and never used"},
        Figure{&F::prefetch_failed, "prefetch_failed", count, sum, "reads ahead that failed"},
        Figure{&F::retries, "retries", count, sum, "reads that were tried again"},
        Figure{&F::resident_bytes, "resident_bytes", bytes, sum, "requested weights that were resident"},
        Figure{&F::streamed_bytes, "streamed_bytes", bytes, sum, "requested weights that were fetched"},
        Figure{&F::measured_bytes, "measured_bytes", bytes, sum, "weights computed only to measure"});
  }
};

// A tier for clients of the server.
struct ServedTier {
  std::string name;  // as the configuration calls it
  std::string kind;  // the agent that serves it
  uint32_t count = 1;
  std::string over = {};
  std::optional<uint64_t> capacity_bytes = {};  // empty: the tier has no capacity that could be set
  uint64_t used_bytes = 0;
  std::optional<MemoryCounters> counters = {};

  std::optional<NeuronFigures> neurons() const {
    if (!counters) return std::nullopt;
    return NeuronFigures{counters->hits, counters->staged, counters->misses, counters->evictions};
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = ServedTier;
    return std::tuple(
        Figure{&F::name, "tier", text, latest, "as the configuration calls it"},
        Figure{&F::kind, "kind", text, latest, "the agent that serves it"},
        Figure{&F::count, "count", Quantity::count, latest, "agents"},
        Figure{&F::over, "over", text, latest, "the tier that it lies over", kOrNull},
        Figure{&F::capacity_bytes, "capacity_bytes", bytes, latest, "null if it cannot be set", kOrNull},
        Figure{&F::used_bytes, "used_bytes", bytes, latest, "held"},
        Figure{&F::neurons, "neurons", parts, derived, "requests of units that compute from the tier"});
  }
};

// A link for clients of the server.
struct ServedLink {
  TierLink link;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const ServedLink&;
    return std::tuple(
        Figure{[](F f) { return f.link.from; }, "from", text, derived, "the tier below"},
        Figure{[](F f) { return f.link.to; }, "to", text, derived, "the tier above"},
        Figure{[](F f) { return f.link.counters.messages; }, "messages", count, derived, "moving neurons"},
        Figure{[](F f) { return f.link.counters.neurons; }, "neurons", count, derived, "that crossed"},
        Figure{[](F f) { return f.link.counters.bytes; }, "bytes", Quantity::bytes, derived, "that crossed"});
  }
};

// The answer of /v1/tiers.
struct ServedTiers {
  std::vector<ServedTier> tiers;
  std::vector<ServedLink> links;

  static constexpr auto figures() {
    using F = ServedTiers;
    return std::tuple(Figure{&F::tiers, "tiers", Quantity::parts, Adds::latest, "the store's is the last"},
                      Figure{&F::links, "links", Quantity::parts, Adds::latest, "between tiers"});
  }
};

}  // namespace tierd
