// The four strategies of a run: makes those that a configuration names, and puts another in the place of one.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/host/strategy_instance.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"

namespace tierd {

struct StrategyChoices {
  StrategyChoice predictor, quantizer, cache, balancer;
};

class StrategySet {
 public:
  // `sites` outlives the set. `deadline_ns`: of a call, see Strategy. Errors: plugin_fault; unsupported for a
  // predictor that needs what this host does not give.
  static Result<std::unique_ptr<StrategySet>> create(const StrategyChoices& choices,
                                                     const std::vector<Site>& sites, uint64_t seed,
                                                     uint64_t deadline_ns = kPluginDeadlineNs,
                                                     LinearFunction linear = nullptr);
  StrategySet(const StrategySet&) = delete;
  StrategySet& operator=(const StrategySet&) = delete;

  Strategies& strategies() { return strategies_; }
  const Strategies& strategies() const { return strategies_; }
  const StrategyInstance& instance(std::string_view kind) const;

  // How the cache splits `bytes` among the sites: slots per site. Error: plugin_fault when the answer does
  // not fit.
  Result<std::vector<uint32_t>> share(uint64_t bytes);

  // What the cache wants to have before the first step, [sites] of ascending neurons; after `share`. Empty
  // lists for a cache that does not say. Error: plugin_fault.
  Result<std::vector<std::vector<uint32_t>>> wanted();

  // What `evictable` answers from; set once the residency exists.
  void set_residency(const Residency* residency) { world_.set_residency(residency); }

  // Puts another strategy in the place of the one of its kind, which is destroyed. Between two steps, when
  // nothing is in flight: create, adopt, retire. A cache gets the slots that the arena has (`bytes` as for
  // `share`) and is told what is in them. After an error everything is as it was.
  Status swap(StrategyChoice choice, uint64_t bytes);

 private:
  StrategySet(const std::vector<Site>& sites, uint64_t seed, uint64_t deadline_ns, LinearFunction linear)
      : world_(sites, seed, std::move(linear)), deadline_ns_(deadline_ns) {}

  // One of the four places.
  template <class Table>
  Status make(const StrategyChoice& choice, Strategy<Table>& strategy,
              std::unique_ptr<StrategyInstance>& instance);
  template <class Table>
  Status replace(const StrategyChoice& choice, Strategy<Table>& strategy,
                 std::unique_ptr<StrategyInstance>& instance);
  Result<std::vector<uint32_t>> share(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                                      std::vector<uint32_t> most) const;
  Status hand_over(Strategy<tierd_cache_1>& cache) const;

  PluginWorld world_;
  uint64_t deadline_ns_;
  Strategies strategies_;
  struct {
    std::unique_ptr<StrategyInstance> predictor, quantizer, cache, balancer;
  } instances_;
};

}  // namespace tierd
