// Puts a configuration together: store, plan, agents, strategies, kernel and engine. Agents and strategies
// are shared objects that the configuration names. For the programs that run a model.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/engine/engine.h"
#include "core/host/agent_thread.h"
#include "core/host/strategy_set.h"
#include "core/kernel/pass/scheduler.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/message/counts.h"
#include "core/run/budget.h"
#include "core/run/run_plan.h"
#include "core/run/timeline_file.h"
#include "core/run/traffic.h"
#include "core/run/virtual_machine.h"
#include "core/trace/recorder.h"

namespace tierd {

class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(RunPlan plan, const RuntimeOptions& options);
  // Gives up what is read ahead, and stops the agents.
  ~Runtime();

  // Puts another strategy in the place of the one of its kind; between two steps. What was read ahead is
  // given up, what is resident stays. `tier`: the cache of its memories, which it has of its own. Error:
  // invalid_argument, where no memory has such a cache, and what `choose_strategy` says; everything is as it
  // was then.
  Status swap(std::string_view kind, const StrategyConfig& strategy, const std::string& tier = {});

  // A tier's budget changes between two steps: `capacity` as tiers.NAME.capacity has it, `tier` among
  // TierTable::memories. What its arenas hold moves; everything else keeps what it was given at the start.
  // Errors: invalid_argument; no_space, naming the least that would do now, unless `fit`; unsupported, naming
  // the cache, the agent or the addresses that do not let it; plugin_fault: everything is as it was then.
  // io_error and corrupt, of a read of what a larger arena should hold from now on, and internal, of an agent
  // that failed: the change has been made.
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
  uint64_t least_capacity(size_t tier = 0) const { return budget(tier).used() - resident_bytes(tier); }
  // What a tier can have at most, with what it has now, and who says so.
  MemoryLimit most_capacity(size_t tier = 0) const;
  // Says whether a tier can have another capacity. Errors: unsupported and plugin_fault, as set_capacity has
  // them.
  Status resizable(size_t tier = 0) const;

  // Says whether a run that is played (RuntimeOptions::play_on) can make steps: nobody may look at
  // activations, which are not computed. Error: unsupported, saying who would.
  Status plays() const { return machine_->can_play(plan_.model, strategies_->strategies()); }

  // Closes the trace or writes the timeline, if run.trace or run.timeline names one; with nothing in flight.
  // Error: io_error.
  Status end_recording();
  // NULL: there is none.
  const Timeline* timeline() const { return timeline_ != nullptr ? &timeline_->timeline() : nullptr; }

  // Brings in what stays resident, with progress, of which `told` hears too (0 to 1). May be interrupted
  // through dispatcher().waiter().
  Status load(const std::function<void(double)>& told = {});

  const RunPlan& plan() const { return plan_; }
  Engine& engine() { return *engine_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  const StrategySet& strategies() const { return *strategies_; }
  const std::deque<Residency>& residencies() const { return residencies_; }  // [memories]
  const Budget& budget(size_t tier = 0) const { return tiers_[tier].budget; }
  // Returns the sum over all memories of a tier.
  MemoryCounters counters(size_t tier) const;
  // Returns what was fetched over each link, in the order of the memories that were fetched into.
  std::vector<TierLink> links() const;
  // Returns what the agent of a memory says that a link to it brings, in bytes a second (see MadeAgent); 0
  // for what the store's agent brings.
  double link_rate(size_t link) const;
  uint32_t threads() const { return threads_; }  // that compute
  // What the first unit's agent works with: "avx512-vnni".
  const std::string& compute_backend() const { return first_computing().agents.front().backend; }
  // What a tier's agents work with, likewise.
  const std::string& backend(size_t tier) const { return tiers_[tier].agents.front().backend; }
  const std::string& flash_backend() const { return flash_.backend; }  // "io_uring"
  const ReadChoices& reading() const { return flash_.reading; }
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
  Dispatcher::QueueState flash_queue() const { return dispatcher_->queue(plan_.tiers.store.first_agent); }
  // Times a parked thread of an agent was woken, see ComputeCounts::threads_woken for those that compute.
  uint64_t agent_wake_ups() const;
  // Where weights stay in the lowest memory, piece by piece. The agent writes to it while reads are in flight
  // (Engine::drain).
  std::vector<std::span<const std::byte>> arena() const;
  // Error: plugin_fault.
  Result<PlannedTraffic> planned_traffic() const;

 private:
  static AgentCounts counts(const MadeAgent& of) { return of.counts ? of.counts() : AgentCounts(); }

  // A resident tensor of the store, and where its values are in the memory of the agent that needs it.
  struct PlacedTensor {
    uint32_t tensor = 0;  // among Manifest::resident
    uint64_t offset = 0;
  };
  // What a tier with memories is made of.
  struct TierState {
    Budget budget;
    bool whole = false;           // its arenas have addresses for every neuron
    uint64_t most_arena = 0;      // that there are addresses for, of all memories
    uint64_t staging_offset = 0;  // in each memory
    std::vector<MadeAgent> agents = {};
    std::vector<std::vector<PlacedTensor>> tensors = {};     // [agents]
    std::vector<std::unique_ptr<AgentThread>> threads = {};  // none, or [agents]
  };

  explicit Runtime(RunPlan plan) : plan_(std::move(plan)) {}
  // Whether anything is read and computed.
  bool executes() const { return !machine_ || machine_->executes(); }
  Clock& clock() { return machine_ ? static_cast<Clock&>(machine_->clock()) : wall_; }
  Status make_dispatcher();
  Status make_tier(size_t tier, const RuntimeOptions& options);
  Result<MadeAgent> make_memory_agent(size_t tier, uint32_t i, const RuntimeOptions& options);
  Status make_strategies(const RuntimeOptions& asked);
  Status reserve(size_t tier);
  Status make_store_agent(const RuntimeOptions& options);
  ReadTask read_task(const RuntimeOptions& options) const;
  Status add_agents(std::vector<const Agent*>& agents);
  Status make_kernel(const RuntimeOptions& options);
  // Who hears of the run.
  Status make_recording(const RuntimeOptions& asked, const Scheduler::Options& scheduler,
                        const std::vector<const Agent*>& agents);
  // The tensors of a unit, which its plan numbers in this order, follow its staging.
  std::vector<PlacedTensor> place_tensors(std::span<const uint32_t> resident, ComputeTask& task) const;
  // Returns a core for each thread of one of a tier's agents.
  std::vector<uint32_t> cores_of(const Tier& tier, uint32_t agent) const;
  Status load_tensors();
  // With nothing in flight; the budget and the trace follow.
  // `tier`: of a cache that the tier has of its own.
  Status replace(std::string_view kind, ChosenStrategy chosen, const StrategyConfig& strategy,
                 const std::string& tier = {});
  // Gives the tier's memories these arenas, `parts` [memories]. The budgets of other tiers follow.
  Status resize(size_t tier, std::vector<uint64_t> parts);
  Status recover();                            // puts fallbacks in the place of quarantined strategies
  bool binds_workers() const;                  // one a core, if there are enough
  uint64_t resident_bytes(size_t tier) const;  // slots of its memories
  // [editions] Slots for all neurons that a memory holds.
  std::vector<uint32_t> slots_for_all(MemoryId memory) const;
  uint64_t addresses_for_all(size_t tier) const;  // 0: messages cannot name so many
  const TierState& first_computing() const;
  // The memories of a tier, as indices of what is kept for each.
  std::vector<size_t> memories_of(size_t tier) const;
  Result<Agent*> on_thread(Agent& agent, const TierConfig& config, std::optional<uint32_t> core,
                           std::unique_ptr<AgentThread>& owner) const;

  RunPlan plan_;
  bool quiet_ = false;
  bool force_ = false;  // more than there is
  uint32_t threads_ = 1;
  std::unique_ptr<VirtualMachine> machine_;  // NULL: time is that of the wall
  WallClock wall_;
  PoolTable pools_;
  std::unique_ptr<StrategySet> strategies_;
  std::deque<TierState> tiers_;                      // as TierTable::memories
  std::vector<uint64_t> parts_;                      // [memories] bytes that each one's cache may share out
  std::vector<std::vector<uint32_t>> slots_;         // [memories][editions]
  std::vector<std::vector<uint64_t>> arena_offset_;  // [memories], see Memory
  std::vector<BudgetChange> budget_changes_;
  std::vector<ExtentPieces> extent_pieces_;            // of the store, for agents that read it
  std::vector<CompressedExtents> compressed_extents_;  // likewise
  MadeAgent flash_;
  std::unique_ptr<AgentThread> flash_thread_;
  std::unique_ptr<Recording> drawn_;  // NULL: nothing is
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<TimelineFile> timeline_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::deque<Residency> residencies_;  // [memories]
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace tierd
