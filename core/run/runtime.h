// Assembles a configuration: store, plan, agents, strategies, kernel and engine. Agents and strategies are
// shared objects that the configuration names. For the programs that run a model.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent/counts.h"
#include "core/base/result.h"
#include "core/engine/engine.h"
#include "core/run/assembly.h"
#include "core/run/budget.h"
#include "core/run/run_plan.h"
#include "core/run/traffic.h"

namespace tierd {

class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(RunPlan plan, const RuntimeOptions& options);
  // Gives up reads ahead, and stops the agents.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Lets the run continue when it loses an agent of a tier with memories, as if the tier's count had been one
  // less from the start. Counters, swaps and resizes are kept; strategies begin anew; a trace or a timeline
  // ends there. If the configuration cannot do without the agent, or its tier has no other, the step and
  // every later one fail with an error that says so. See Engine::set_rebuild.
  void go_on_without_lost_agents();

  // Replaces the strategy of a kind; between two steps. Reads ahead are given up, resident neurons stay.
  // `tier`: a tier with a cache of its own, which is replaced. Errors: invalid_argument, if no memory has
  // such a cache; those of `choose_strategy`. An error changes nothing.
  Status swap(std::string_view kind, const StrategyConfig& strategy, const std::string& tier = {});

  // Returns the error of a strategy that is quarantined and has no fallback: no step succeeds before it is
  // replaced. Ok: there is none. Between two steps.
  Status quarantine() const;
  // Creates every quarantined strategy again, as configured; between two steps. Errors: those of `swap`.
  Status make_anew();

  // Changes a tier's budget between two steps: `capacity` as in tiers.NAME.capacity, `tier` among
  // TierTable::memories. Only its arenas change; everything else keeps its initial size. Errors that change
  // nothing: invalid_argument; no_space, naming the least sufficient capacity now, unless `fit`, and the
  // least that a strategy can work with, if one says so; unsupported, naming the cache, the agent or the
  // addresses that prevent it; plugin_fault. Errors after the change: io_error and corrupt, of a read for a
  // larger arena, and internal, of an agent that failed.
  Status set_capacity(std::string_view capacity, bool fit, size_t tier = 0);
  struct BudgetChange {
    size_t tier = 0;
    uint32_t step = 0;  // the first step with it
    uint64_t from = 0;  // bytes
    uint64_t to = 0;
    uint64_t resident = 0;  // slots for weights
    bool raised_to_least = false;
  };
  const std::vector<BudgetChange>& budget_changes() const { return budget_changes_; }
  // Returns the bytes that a capacity means for a tier. Error: invalid_argument naming `origin`.
  Result<uint64_t> capacity_bytes(std::string_view capacity, std::string_view origin, size_t tier = 0) const;
  // Returns the smallest capacity that a tier can have now: the bytes in use beside the resident weights.
  uint64_t least_capacity(size_t tier = 0) const { return budget(tier).used() - now_->resident_bytes(tier); }
  // Returns the largest capacity that a tier can have now, and the source of the limit.
  MemoryLimit most_capacity(size_t tier = 0) const;
  // Returns whether a tier can have another capacity. Errors: unsupported and plugin_fault of set_capacity.
  Status resizable(size_t tier = 0) const;

  // Returns whether a run that is played (RuntimeOptions::play_on) can make steps: no part may read
  // activations, which are not computed. Error: unsupported, naming the reader.
  Status plays() const { return now_->plays(); }

  // Closes the trace or writes the timeline, if run.trace or run.timeline names one; with nothing in flight.
  // Error: io_error.
  Status end_recording();
  // Returns NULL if there is none.
  const Timeline* timeline() const {
    return now_->timeline != nullptr ? &now_->timeline->timeline() : nullptr;
  }

  // Loads the resident neurons, with progress; calls `told` with it, too (0 to 1). `waiter` can interrupt it.
  Status load(const std::function<void(double)>& told = {});

  // The results of these three are valid until an agent is lost.
  const RunPlan& plan() const { return now_->plan; }
  Dispatcher& dispatcher() { return *now_->dispatcher; }
  const Scheduler& scheduler() const { return *now_->scheduler; }
  Engine& engine() { return *engine_; }
  // Can stop the run. [any thread]
  Waiter& waiter() { return waiter_; }
  const StrategySet& strategies() const { return *now_->strategies; }
  // See StrategySet::rows_apart; between two steps.
  Result<bool> rows_apart() { return now_->strategies->rows_apart(); }
  const std::deque<Residency>& residencies() const { return now_->residencies; }  // [memories]
  const Budget& budget(size_t tier = 0) const { return now_->tiers[tier].budget; }
  // Returns the sum over all memories of a tier.
  MemoryCounters counters(size_t tier) const;
  // Returns the traffic of each link, in the order of the destination memories.
  std::vector<TierLink> links() const;
  // Returns the rate of a link, in bytes per second, as the destination memory's agent gives it (see
  // MadeAgent); 0 for links of the store's agent.
  double link_rate(size_t link) const;
  uint32_t threads() const { return now_->threads; }  // threads that compute
  // Returns the backend of the first unit's agent: "avx512-vnni".
  const std::string& compute_backend() const { return now_->first_computing().agents.front().backend; }
  // Returns the backend of a tier's agents, likewise.
  const std::string& backend(size_t tier) const { return now_->tiers[tier].agents.front().backend; }
  const std::string& flash_backend() const { return now_->flash.backend; }  // "io_uring"
  const ReadChoices& reading() const { return now_->flash.reading; }
  // Returns the direct reads of a tier; none if it does not read directly. At any time.
  struct DirectReads {
    std::string way;  // see ReadChoices; empty if nothing is executed
    std::string way_why;
    ReadCounts counts;  // of all its agents
  };
  std::optional<DirectReads> direct_reads(size_t tier) const;
  // Between two steps.
  ComputeCounts compute_counts() const;
  // Return the sums over all agents of a tier, between two steps; zeros if its device counts none.
  MoveCounts move_counts(size_t tier) const;
  RunCounts run_counts(size_t tier) const;
  // Returns the reads of the store by all agents. At any time.
  ReadCounts flash_counts() const;
  Dispatcher::QueueState flash_queue() const {
    return now_->dispatcher->queue(plan().tiers.store.first_agent);
  }
  // Returns how often parked threads of agents were woken (computing: ComputeCounts::threads_woken).
  uint64_t agent_wake_ups() const;
  // Returns the resident weights of the lowest memory, one piece for each edition. The agent writes to them
  // while reads are in flight (Engine::drain).
  std::vector<std::span<const std::byte>> arena() const;
  // Error: plugin_fault.
  Result<PlannedTraffic> planned_traffic() const;

 private:
  explicit Runtime(const RuntimeOptions& options) : options_(options) {}
  // Replaces a strategy with nothing in flight, and updates the budget and the trace. `tier`: of a cache that
  // the tier has of its own.
  Status replace(std::string_view kind, ChosenStrategy chosen, const StrategyConfig& strategy,
                 const std::string& tier = {});
  // Returns the arenas of all memories if the tier had `arena` bytes for weights.
  std::vector<uint64_t> parts_with(size_t tier, uint64_t arena) const;
  // Checks that the strategies can work with this capacity of a tier. Error: no_space, naming the least.
  Status strategies_fit(size_t tier, uint64_t bytes, const std::string& key) const;
  // Gives the tier's memories these arenas, `parts` [memories], and updates the budgets of other tiers.
  Status resize(size_t tier, std::vector<uint64_t> parts);
  template <class Visit>
  Status for_each_strategy(const Visit& visit) const;
  Status recover();  // replaces quarantined strategies by their fallbacks
  AgentCounts counts_of_agents(size_t tier) const;
  // Returns the configuration with the changes made since the start.
  Config present_config() const;
  Result<EngineParts> rebuild(uint16_t lost);

  RuntimeOptions options_;
  Waiter waiter_;
  std::unique_ptr<Assembly> now_;
  std::shared_ptr<Engine> engine_;  // shared with a lost agent's assembly
  std::vector<BudgetChange> budget_changes_;
};

}  // namespace tierd
