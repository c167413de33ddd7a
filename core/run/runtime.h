// Puts a configuration together: store, plan, agents, strategies, kernel and engine. Agents and strategies
// are shared objects that the configuration names. For the programs that run a model.
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
  // Gives up what is read ahead, and stops the agents.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // What a run does that has lost an agent of a tier with memories: it goes on without that agent, as if the
  // tier's count had been one less from the start. What it had counted, and what was swapped and resized,
  // stays; strategies begin anew; a trace or a timeline ends there. Where the configuration cannot do without
  // the agent, or its tier has no other, the error of the step says so, and that of every later one. See
  // Engine::set_rebuild.
  void go_on_without_lost_agents();

  // Puts another strategy in the place of the one of its kind; between two steps. What was read ahead is
  // given up, what is resident stays. `tier`: the cache of its memories, which it has of its own. Error:
  // invalid_argument, where no memory has such a cache, and what `choose_strategy` says; everything is as it
  // was then.
  Status swap(std::string_view kind, const StrategyConfig& strategy, const std::string& tier = {});

  // Returns the error of a strategy that is quarantined and has no fallback: no step succeeds before another
  // is in its place. Ok: there is none. Between two steps.
  Status quarantine() const;
  // Makes every quarantined strategy anew, as the configuration has it; between two steps. Errors: those of
  // `swap`.
  Status make_anew();

  // A tier's budget changes between two steps: `capacity` as tiers.NAME.capacity has it, `tier` among
  // TierTable::memories. What its arenas hold moves; everything else keeps what it was given at the start.
  // Errors: invalid_argument; no_space, naming the least that would do now, unless `fit`, and the least that
  // a strategy can work with, if one says so; unsupported, naming the cache, the agent or the addresses that
  // do not let it; plugin_fault: everything is as it was then. io_error and corrupt, of a read of what a
  // larger arena should hold from now on, and internal, of an agent that failed: the change has been made.
  Status set_capacity(std::string_view capacity, bool fit, size_t tier = 0);
  struct BudgetChange {
    size_t tier = 0;
    uint32_t step = 0;  // the first with it
    uint64_t from = 0;  // bytes
    uint64_t to = 0;
    uint64_t resident = 0;  // slots for weights
    bool raised_to_least = false;
  };
  const std::vector<BudgetChange>& budget_changes() const { return budget_changes_; }
  // What a capacity means for a tier, in bytes. Error: invalid_argument naming `origin`.
  Result<uint64_t> capacity_bytes(std::string_view capacity, std::string_view origin, size_t tier = 0) const;
  // The smallest that a tier can have now: what is in use beside the weights that stay.
  uint64_t least_capacity(size_t tier = 0) const { return budget(tier).used() - now_->resident_bytes(tier); }
  // What a tier can have at most, with what it has now, and who says so.
  MemoryLimit most_capacity(size_t tier = 0) const;
  // Says whether a tier can have another capacity. Errors: unsupported and plugin_fault, as set_capacity has
  // them.
  Status resizable(size_t tier = 0) const;

  // Says whether a run that is played (RuntimeOptions::play_on) can make steps: nobody may look at
  // activations, which are not computed. Error: unsupported, saying who would.
  Status plays() const { return now_->plays(); }

  // Closes the trace or writes the timeline, if run.trace or run.timeline names one; with nothing in flight.
  // Error: io_error.
  Status end_recording();
  // NULL: there is none.
  const Timeline* timeline() const {
    return now_->timeline != nullptr ? &now_->timeline->timeline() : nullptr;
  }

  // Brings in what stays resident, with progress, of which `told` hears too (0 to 1). May be interrupted
  // through `waiter`.
  Status load(const std::function<void(double)>& told = {});

  // What these three hand out lasts until an agent is lost.
  const RunPlan& plan() const { return now_->plan; }
  Dispatcher& dispatcher() { return *now_->dispatcher; }
  const Scheduler& scheduler() const { return *now_->scheduler; }
  Engine& engine() { return *engine_; }
  // Where the run can be stopped from. [any thread]
  Waiter& waiter() { return waiter_; }
  const StrategySet& strategies() const { return *now_->strategies; }
  // See StrategySet::rows_apart; between two steps.
  Result<bool> rows_apart() { return now_->strategies->rows_apart(); }
  const std::deque<Residency>& residencies() const { return now_->residencies; }  // [memories]
  const Budget& budget(size_t tier = 0) const { return now_->tiers[tier].budget; }
  // Returns the sum over all memories of a tier.
  MemoryCounters counters(size_t tier) const;
  // Returns what was fetched over each link, in the order of the memories that were fetched into.
  std::vector<TierLink> links() const;
  // Returns what the agent of a memory says that a link to it brings, in bytes a second (see MadeAgent); 0
  // for what the store's agent brings.
  double link_rate(size_t link) const;
  uint32_t threads() const { return now_->threads; }  // that compute
  // What the first unit's agent works with: "avx512-vnni".
  const std::string& compute_backend() const { return now_->first_computing().agents.front().backend; }
  // What a tier's agents work with, likewise.
  const std::string& backend(size_t tier) const { return now_->tiers[tier].agents.front().backend; }
  const std::string& flash_backend() const { return now_->flash.backend; }  // "io_uring"
  const ReadChoices& reading() const { return now_->flash.reading; }
  // What a tier reads directly, and how; nothing where it does not. At any time.
  struct DirectReads {
    std::string way;  // as ReadChoices has it; empty where nothing is executed
    std::string way_why;
    ReadCounts counts;  // of all its agents
  };
  std::optional<DirectReads> direct_reads(size_t tier) const;
  // Between two steps.
  ComputeCounts compute_counts() const;
  // Returns the sums over all agents of a tier, between two steps; they are zero where its device counts
  // none.
  MoveCounts move_counts(size_t tier) const;
  RunCounts run_counts(size_t tier) const;
  // What was read of the store, by all agents. At any time.
  ReadCounts flash_counts() const;
  Dispatcher::QueueState flash_queue() const {
    return now_->dispatcher->queue(plan().tiers.store.first_agent);
  }
  // Times a parked thread of an agent was woken, see ComputeCounts::threads_woken for those that compute.
  uint64_t agent_wake_ups() const;
  // Where weights stay in the lowest memory, piece by piece. The agent writes to it while reads are in flight
  // (Engine::drain).
  std::vector<std::span<const std::byte>> arena() const;
  // Error: plugin_fault.
  Result<PlannedTraffic> planned_traffic() const;

 private:
  explicit Runtime(const RuntimeOptions& options) : options_(options) {}
  // With nothing in flight; the budget and the trace follow.
  // `tier`: of a cache that the tier has of its own.
  Status replace(std::string_view kind, ChosenStrategy chosen, const StrategyConfig& strategy,
                 const std::string& tier = {});
  // Returns the arenas of all memories if the tier had so many bytes for weights.
  std::vector<uint64_t> parts_with(size_t tier, uint64_t arena) const;
  // Checks that the strategies can work with so many bytes of a tier. Error: no_space, naming the least that
  // they can work with.
  Status strategies_fit(size_t tier, uint64_t bytes, const std::string& key) const;
  // Gives the tier's memories these arenas, `parts` [memories]. The budgets of other tiers follow.
  Status resize(size_t tier, std::vector<uint64_t> parts);
  template <class Visit>
  Status for_each_strategy(const Visit& visit) const;
  Status recover();  // puts fallbacks in the place of quarantined strategies
  AgentCounts counts_of_agents(size_t tier) const;
  // With what was changed since.
  Config present_config() const;
  Result<EngineParts> rebuild(uint16_t lost);

  RuntimeOptions options_;
  Waiter waiter_;
  std::unique_ptr<Assembly> now_;
  std::shared_ptr<Engine> engine_;  // shared with what a lost agent leaves behind
  std::vector<BudgetChange> budget_changes_;
};

}  // namespace tierd
