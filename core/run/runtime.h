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

#include "core/base/block_device.h"
#include "core/base/result.h"
#include "core/config/config.h"
#include "core/engine/engine.h"
#include "core/engine/memory_plan.h"
#include "core/engine/model_plan.h"
#include "core/host/agent_thread.h"
#include "core/host/strategy_set.h"
#include "core/kernel/budget.h"
#include "core/kernel/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/kernel/scheduler.h"
#include "core/message/counts.h"
#include "core/run/agent_choices.h"
#include "core/run/strategy_choices.h"
#include "core/run/timeline_file.h"
#include "core/run/virtual_machine.h"
#include "core/store/store.h"
#include "core/trace/recorder.h"

namespace tierd {

struct RuntimeOptions {
  bool fit = false;         // raise a budget that is too small to the least that would do
  bool quiet = false;       // no progress
  uint32_t logit_rows = 1;  // rows of a batch that may ask for logits
  // How the store's data file is opened; tests put a device that misbehaves in its place. Empty: as the agent
  // does.
  OpenDevice open_device = {};
  Recording* recording = nullptr;      // of a run whose activity is played (run.execute = "trace")
  KernelObserver* observer = nullptr;  // hears of everything; a run that has one cannot be traced or timed
};

// What a run will be, before any memory is taken: for --check and for Runtime::create.
struct RunPlan {
  Config config;
  Store store;
  MemoryPlan memory;
  ModelPlan model;
  StrategyChoices strategies;
  StrategyChoices fallbacks;  // without a plugin where none is named
  AgentChoices agents;
};
// Opens (or makes) the store that the configuration names. Errors name file or key.
Result<Store> open_store(const Config& config, const RuntimeOptions& options);
// The same, and divides the memory.
Result<RunPlan> plan_run(const Config& config, const RuntimeOptions& options);

class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(RunPlan plan, const RuntimeOptions& options);
  // Stops the agents; nothing may be in flight (Engine::drain).
  ~Runtime();

  // Puts another strategy in the place of the one of its kind; between two steps. What was read ahead is
  // given up, what is resident stays. After an error everything is as it was.
  Status swap(std::string_view kind, const StrategyConfig& strategy);

  // The budget changes between two steps: `capacity` as tiers.dram.capacity has it. What the arena holds
  // moves; everything else keeps what it was given at the start. Errors: invalid_argument; no_space, naming
  // the least that would do now, unless `fit`; unsupported, naming the cache, the agent or the addresses that
  // do not let it; plugin_fault: everything is as it was then. io_error and corrupt, of a read of what a
  // larger arena should hold from now on, and internal, of an agent that failed: the change has been made.
  Status set_capacity(std::string_view capacity, bool fit);
  struct BudgetChange {
    uint32_t step = 0;  // the first with it
    uint64_t from = 0;  // bytes
    uint64_t to = 0;
    uint64_t resident = 0;  // slots for weights
    bool raised_to_least = false;
  };
  const std::vector<BudgetChange>& budget_changes() const { return budget_changes_; }
  // What a capacity means here, in bytes. Error: invalid_argument naming `origin`.
  Result<uint64_t> capacity_bytes(std::string_view capacity, std::string_view origin) const;
  // The smallest that there can be now: what is in use beside the weights that stay.
  uint64_t least_capacity() const { return budget_.used() - resident_bytes(); }

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
  const std::deque<Residency>& residencies() const { return residencies_; }  // [units]
  const Budget& budget() const { return budget_; }
  uint32_t threads() const { return threads_; }                                 // that compute
  const std::string& compute_backend() const { return dram_.front().backend; }  // "avx512-vnni"
  const std::string& flash_backend() const { return flash_.backend; }           // "io_uring"
  const ReadChoices& reading() const { return flash_.reading; }
  // Between two steps.
  ComputeCounts compute_counts() const;
  // At any time.
  ReadCounts flash_counts() const { return counts(flash_).read; }
  Dispatcher::QueueState flash_queue() const { return dispatcher_->queue(flash_number()); }
  // Times a parked thread of an agent was woken, see ComputeCounts::threads_woken for those that compute.
  uint64_t agent_wake_ups() const;
  // Where weights stay with the first unit, piece by piece. The agent writes to it while reads are in flight
  // (Engine::drain).
  std::vector<std::span<const std::byte>> arena() const;
  // Traffic says what a decode step of a dense model takes from the arena and what it must read from flash,
  // the embedding's row aside. Nothing is promised for a cache that does not say beforehand what it keeps.
  struct Traffic {
    uint64_t resident_bytes = 0;
    uint64_t streamed_bytes = 0;
    std::vector<FileRange> streamed;  // where those lie in the store's data file, in the order of a step
  };
  // Error: plugin_fault.
  Result<Traffic> planned_traffic() const;

 private:
  static AgentCounts counts(const MadeAgent& of) { return of.counts ? of.counts() : AgentCounts(); }
  explicit Runtime(RunPlan plan) : plan_(std::move(plan)), budget_(plan_.memory.capacity) {}
  Clock& clock() { return machine_ ? static_cast<Clock&>(machine_->clock()) : wall_; }
  Status make_dispatcher();
  Status make_dram();
  Status make_strategies();
  Status make_flash(const RuntimeOptions& options);
  Status make_kernel(const RuntimeOptions& options);
  // Who hears of the run.
  Status make_recording(const RuntimeOptions& asked, const Scheduler::Options& scheduler,
                        const std::vector<const Agent*>& agents);
  // The tensors of a unit, which its plan numbers in this order, follow its staging.
  void place_tensors(std::span<const uint32_t> resident, ComputeTask& task);
  std::vector<uint32_t> cores_of(uint32_t unit) const;  // one for each of its threads
  Status load_tensors();
  // With nothing in flight; the budget and the trace follow.
  Status replace(ChosenStrategy chosen, const StrategyConfig& strategy);
  Status recover();                 // puts fallbacks in the place of quarantined strategies
  bool binds_workers() const;       // one a core, if there are enough
  uint64_t resident_bytes() const;  // slots of all units
  uint64_t whole_arena() const;     // with addresses for all neurons; 0 where spans cannot name so many
  // Agents are driven in this order: what flash has begun goes on by itself while others compute.
  static uint16_t flash_number() { return 1; }
  static uint16_t dram_number(uint32_t unit) { return static_cast<uint16_t>(2 + unit); }
  static MemoryId dram_memory(uint32_t unit) { return static_cast<MemoryId>(1 + unit); }
  Result<Agent*> on_thread(Agent& agent, const std::string& thread, const std::string& core, const char* key,
                           std::unique_ptr<AgentThread>& owner);

  // A resident tensor of the store, and where its values are in the memory of a DRAM agent.
  struct PlacedTensor {
    uint32_t tensor = 0;  // among Manifest::resident
    uint64_t offset = 0;
  };

  RunPlan plan_;
  bool quiet_ = false;
  Budget budget_;
  uint32_t threads_ = 1;
  std::unique_ptr<VirtualMachine> machine_;  // NULL: time is that of the wall
  WallClock wall_;
  PoolTable pools_;
  std::unique_ptr<StrategySet> strategies_;
  std::vector<std::vector<uint32_t>> slots_;  // [units][sites]
  uint64_t most_arena_ = 0;                   // that there are addresses for, of all units
  std::vector<BudgetChange> budget_changes_;
  std::vector<uint64_t> arena_offset_;              // [sites] of the first memory, see Memory
  uint64_t staging_offset_ = 0;                     // in the DRAM agents' memory
  std::vector<std::vector<PlacedTensor>> tensors_;  // [units]
  std::vector<MadeAgent> dram_;                     // [units]
  std::vector<ExtentPieces> extent_pieces_;         // of the store, for the agent that reads it
  MadeAgent flash_;
  std::vector<std::unique_ptr<AgentThread>> dram_threads_;  // none, or [units]
  std::unique_ptr<AgentThread> flash_thread_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<TimelineFile> timeline_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::deque<Residency> residencies_;  // [units]
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace tierd
