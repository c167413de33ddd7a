// The strategies of a run: makes those that a configuration names, and puts another in the place of one.
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
  // A predictor that only keeps the neurons' heat; without a plugin: the first one does, if it can.
  StrategyChoice heat = {};
  // A tier that is named here has this cache in its memories, in place of `cache`.
  std::map<std::string, StrategyChoice> tier_caches = {};

  // The one of a tier's memories.
  const StrategyChoice& cache_of(const std::string& tier) const {
    const auto own = tier_caches.find(tier);
    return own != tier_caches.end() ? own->second : cache;
  }
};

class StrategySet {
 public:
  struct Options {
    // Each memory has a cache of its own. Nothing is asked of arenas, links and staging.
    Topology topology = Topology::over_store(1);
    uint64_t seed = 0;
    uint64_t deadline_ns = kPluginDeadlineNs;  // of a call, see Strategy
    PluginCalls* running = nullptr;            // is told of every call; outlives the set
    LinearFunction linear = nullptr;
    uint32_t measure_every = 0;  // steps; see Scheduler::Options
  };
  // `sites` outlives the set. Asks the balancer for the homes of all neurons. Errors: plugin_fault;
  // unsupported for a predictor that needs what this host does not give.
  static Result<std::unique_ptr<StrategySet>> create(const StrategyChoices& choices, const SiteTable& sites,
                                                     const Options& options);
  StrategySet(const StrategySet&) = delete;
  StrategySet& operator=(const StrategySet&) = delete;

  Strategies& strategies() { return strategies_; }
  const Strategies& strategies() const { return strategies_; }
  // The instance of a kind. A cache is that of the named tier's first memory; without a name, of the first
  // memory whose tier has no cache of its own, and of the first memory where all tiers have one.
  // That of kind "heat" is the predictor's, where that one keeps the heat.
  const StrategyInstance& instance(std::string_view kind, std::string_view tier = {}) const;

  // Returns whether the result of a row depends on no other row of its batch: the predictor leaves nothing
  // out, or says so of itself (TIERD_PREDICTOR_ROWS_APART), and no quantizer ranks neurons. Error:
  // plugin_fault.
  Result<bool> rows_apart();

  // Whether a strategy of its own keeps the neurons' heat.
  bool keeps_heat_apart() const { return heat_ != nullptr; }
  // Whether a memory has the cache that `swap` replaces.
  bool has_cache_of(std::string_view tier) const;
  // The cache of a memory.
  const StrategyInstance& cache_of(MemoryId memory) const { return *caches_[memory - 1u]; }

  Placement& placement() { return placement_; }
  const Placement& placement() const { return placement_; }

  // Tells all instances how many bytes each memory's arena has, `parts` [memories]. A cache that goes by what
  // other memories have is asked for another split afterwards.
  void tell_bytes(std::span<const uint64_t> parts);
  // Asks whether the predictor could work with such bytes for each memory; nothing changes. Errors: no_space
  // with its reason, plugin_fault.
  Status fits(std::span<const uint64_t> parts, std::span<const uint64_t> present);
  // Tells all instances what a read of the store into a memory costs beside its bytes.
  void tell_gap(MemoryId memory, uint64_t bytes);
  // How each memory's cache splits its arena's bytes, which it is told, among the editions: slots,
  // [memories][editions]. Error: plugin_fault when an answer does not fit.
  Result<std::vector<std::vector<uint32_t>>> share(const std::vector<uint64_t>& parts);

  // Bytes that `n` memories have together, the first of which is `first`: each one's part, by what is at home
  // there.
  std::vector<uint64_t> divide(uint64_t bytes, MemoryId first, uint32_t n) const;

  // What the caches want to have before the first step, [memories][editions] of ascending neurons; after
  // `share`. Empty lists for caches that do not say. Error: plugin_fault.
  Result<std::vector<std::vector<std::vector<uint32_t>>>> wanted();

  // What `evictable` answers from, [memories]; set once the residencies exist.
  void set_residencies(const std::deque<Residency>& residencies);

  // Puts another strategy in the place of the one of its kind, which is destroyed. Between two steps, when
  // nothing is in flight: create, adopt, retire. Caches get the slots that their arenas have (`parts` as for
  // `share`) and are told what is in them. A balancer is asked for the homes, too. After an error everything
  // is as it was.
  // `tier`: the cache of its memories, which it has of its own; empty: of all memories that have none.
  Status swap(StrategyChoice choice, const std::vector<uint64_t>& parts, std::string_view tier = {});
  // The same for the predictor that only keeps the neurons' heat, which begins anew.
  Status swap_heat(const StrategyChoice& choice);

 private:
  using Instance = std::unique_ptr<StrategyInstance>;

  StrategySet(const SiteTable& sites, const Options& options);

  // One of the places.
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
  // Whether memory `m` has the cache that is named so.
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
  std::set<std::string> tiers_with_caches_;  // of their own
  Placement placement_;
  std::deque<PluginWorld> worlds_;  // of strategies that belong to no memory; then [memories]
  uint64_t deadline_ns_;
  PluginCalls* running_;
  uint32_t measure_every_;
  Strategies strategies_;
  Instance predictor_, quantizer_, balancer_;
  Instance heat_;                 // NULL: the predictor keeps it, or nobody does
  std::vector<Instance> caches_;  // [memories]
};

}  // namespace tierd
