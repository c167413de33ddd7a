// The strategies of a run: creates those that a configuration names, and swaps them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/placement.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "core/strategy/strategy_instance.h"

namespace tierd {

struct StrategyChoices {
  StrategyChoice predictor, quantizer, cache, balancer;
  // A predictor that only keeps the neurons' heat; without a plugin `predictor` keeps it, if it can.
  StrategyChoice heat = {};
  // Tiers whose memories have a cache of their own in place of `cache`.
  std::map<std::string, StrategyChoice> tier_caches = {};

  // Returns the cache of a tier's memories.
  const StrategyChoice& cache_of(const std::string& tier) const {
    const auto own = tier_caches.find(tier);
    return own != tier_caches.end() ? own->second : cache;
  }
};

class StrategySet {
 public:
  struct Options {
    // Each memory has a cache of its own. Arenas, links and staging are not used.
    Topology topology = Topology::over_store(1);
    uint64_t seed = 0;
    uint64_t deadline_ns = kPluginDeadlineNs;  // of a call, see Strategy
    PluginCalls* running = nullptr;            // records every call; outlives the set
    LinearFunction linear = nullptr;
    uint32_t measure_every = 0;  // steps; see Scheduler::Options
  };
  // `sites` outlives the set. Asks the balancer for the homes of all neurons. Errors: plugin_fault;
  // unsupported for a predictor whose needs this host does not serve.
  static Result<std::unique_ptr<StrategySet>> create(const StrategyChoices& choices, const SiteTable& sites,
                                                     const Options& options);
  StrategySet(const StrategySet&) = delete;
  StrategySet& operator=(const StrategySet&) = delete;

  Strategies& strategies() { return strategies_; }
  const Strategies& strategies() const { return strategies_; }
  // Returns the instance of a kind. For a cache: that of the named tier's first memory; without a name, of
  // the first memory whose tier has no cache of its own, or of the first memory if all tiers have one. For
  // "heat": the predictor's, if that keeps the heat.
  const StrategyInstance& instance(std::string_view kind, std::string_view tier = {}) const;

  // Returns whether the result of a row depends on no other row of its batch: the predictor is lossless or
  // declares TIERD_PREDICTOR_ROWS_APART, and no quantizer with a choice is lossy or ranks neurons. Error:
  // plugin_fault.
  Result<bool> rows_apart();

  // Returns whether a separate strategy keeps the neurons' heat.
  bool keeps_heat_apart() const { return heat_ != nullptr; }
  // Returns whether a memory has the cache that `swap` replaces.
  bool has_cache_of(std::string_view tier) const;
  // Returns the cache of a memory.
  const StrategyInstance& cache_of(MemoryId memory) const { return *caches_[memory - 1u]; }

  Placement& placement() { return placement_; }
  const Placement& placement() const { return placement_; }

  // Reports the bytes of each memory's arena, `parts` [memories], to all instances. A cache that uses the
  // sizes of other memories is asked for another split afterwards.
  void tell_bytes(std::span<const uint64_t> parts);
  // Asks the predictor whether it could work with these bytes for each memory; changes nothing. Errors:
  // no_space with its reason, plugin_fault.
  Status fits(std::span<const uint64_t> parts, std::span<const uint64_t> present);
  // Reports to all instances the cost of a read of the store into a memory, beyond the bytes it fetches.
  void tell_gap(MemoryId memory, uint64_t bytes);
  // Reports each memory's bytes to its cache, and returns the cache's split among the editions: slots,
  // [memories][editions]. Error: plugin_fault for an invalid split.
  Result<std::vector<std::vector<uint32_t>>> share(const std::vector<uint64_t>& parts);

  // Divides the bytes of `n` memories, beginning with `first`, by the neurons whose home is there.
  std::vector<uint64_t> divide(uint64_t bytes, MemoryId first, uint32_t n) const;

  // Returns the neurons that the caches want before the first step, [memories][editions], ascending; after
  // `share`. The list of a cache without `fill` is empty. Error: plugin_fault.
  Result<std::vector<std::vector<std::vector<uint32_t>>>> wanted();

  // Sets the residencies, [memories], from which `evictable` answers, once they exist.
  void set_residencies(const std::deque<Residency>& residencies);

  // Replaces the strategy of the choice's kind, and destroys the old one. Between two steps, with nothing in
  // flight: create, adopt, retire. A new cache gets the slots of its arena (`parts` as for `share`) and the
  // list of resident neurons. A new balancer is asked for the homes, too. An error changes nothing. `tier`: a
  // tier with a cache of its own, which is replaced; empty: the cache of all other memories.
  Status swap(StrategyChoice choice, const std::vector<uint64_t>& parts, std::string_view tier = {});
  // Replaces the predictor that only keeps the neurons' heat; the new one begins without data.
  Status swap_heat(const StrategyChoice& choice);

 private:
  using Instance = std::unique_ptr<StrategyInstance>;

  StrategySet(const SiteTable& sites, const Options& options);

  // Creates the instance of one kind.
  template <class Table>
  Status make(const StrategyChoice& choice, const PluginWorld& world, Strategy<Table>& strategy,
              Instance& instance) const;
  Status make_predictor(const StrategyChoice& choice, Strategy<tierd_predictor_1>& strategy,
                        std::vector<uint8_t>& reads_x, Instance& instance) const;
  Status make_heat(const StrategyChoice& choice, Strategy<tierd_heat_1>& strategy, Instance& instance) const;
  Result<Strategy<tierd_heat_1>> heat_of_predictor() const;
  Status ask_reads_x(Strategy<tierd_predictor_1>& predictor, uint32_t caps,
                     std::vector<uint8_t>& reads_x) const;
  Result<std::vector<uint8_t>> scored(Strategy<tierd_predictor_1>& predictor,
                                      Strategy<tierd_levels_1>& quantizer,
                                      Strategy<tierd_balancer_1>& balancer) const;
  template <class Table>
  Status replace(const StrategyChoice& choice, Strategy<Table>& strategy, Instance& instance);
  Status replace_predictor(const StrategyChoice& choice);
  Status replace_caches(const StrategyChoice& choice, const std::vector<uint64_t>& parts,
                        std::string_view tier);
  // Returns whether memory `m` has the cache of `tier`; empty: the common cache.
  bool has_cache_of(size_t m, std::string_view tier) const {
    const std::string& own = topology_.memories[m].name;
    return tiers_with_caches_.contains(own) ? own == tier : tier.empty();
  }
  std::vector<uint32_t> at_home(size_t m) const;
  std::vector<uint32_t> most_slots(size_t m) const;
  const PluginWorld& world_of(size_t m) const { return worlds_[m + 1]; }
  Status ask_homes(Strategy<tierd_balancer_1>& balancer, Placement& placement) const;
  Result<std::vector<uint32_t>> share(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                                      std::vector<uint32_t> most) const;
  Status hand_over(const PluginWorld& world, Strategy<tierd_cache_1>& cache) const;
  const SiteTable& sites() const { return worlds_.front().sites(); }

  const Topology topology_;
  std::set<std::string> tiers_with_caches_;  // tiers with a cache of their own
  Placement placement_;
  std::deque<PluginWorld> worlds_;  // of strategies without a memory; then [memories]
  uint64_t deadline_ns_;
  PluginCalls* running_;
  uint32_t measure_every_;
  Strategies strategies_;
  Instance predictor_, quantizer_, balancer_;
  Instance heat_;                 // NULL: the predictor keeps the heat, or no strategy does
  std::vector<Instance> caches_;  // [memories]
};

}  // namespace tierd
