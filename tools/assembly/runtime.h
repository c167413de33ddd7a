// Puts a configuration together: store, plan, agents, strategies, kernel and engine. The one place where core
// meets tiers and plugins; shared by the programs that run a model.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
#include "core/store/store.h"
#include "core/trace/recorder.h"
#include "tiers/compute/team.h"
#include "tiers/dram/dram_agent.h"
#include "tiers/flash/bandwidth.h"
#include "tiers/flash/flash_agent.h"
#include "tools/assembly/strategy_choices.h"

namespace tierd {

struct RuntimeOptions {
  bool fit = false;         // raise a budget that is too small to the least that would do
  bool quiet = false;       // no progress
  uint32_t logit_rows = 1;  // rows of a batch that may ask for logits
  // How the store's data file is opened; tests put a device that misbehaves in its place.
  std::function<Result<std::unique_ptr<BlockDevice>>(const std::string&, const DeviceOptions&)> open_device =
      tierd::open_device;
};

// What a run will be, before any memory is taken: for --check and for Runtime::create.
struct RunPlan {
  Config config;
  Store store;
  MemoryPlan memory;
  ModelPlan model;
  StrategyChoices strategies;
  StrategyChoices fallbacks;  // without a plugin where none is named
};
// Opens (or makes) the store that the configuration names and divides the memory. Errors name file or key.
Result<RunPlan> plan_run(const Config& config, const RuntimeOptions& options);

class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(RunPlan plan, const RuntimeOptions& options);
  // Stops the agents; nothing may be in flight (Engine::drain).
  ~Runtime();

  // Puts another strategy in the place of the one of its kind; between two steps. What was read ahead is
  // given up, what is resident stays. After an error everything is as it was.
  Status swap(std::string_view kind, const StrategyConfig& strategy);

  // Closes the trace, if run.trace names one; with nothing in flight. Error: io_error.
  Status end_trace();

  // Brings in what stays resident, with progress. May be interrupted through dispatcher().waiter().
  Status load();

  const RunPlan& plan() const { return plan_; }
  Engine& engine() { return *engine_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  const StrategySet& strategies() const { return *strategies_; }
  const Residency& residency() const { return *residency_; }
  const Budget& budget() const { return budget_; }
  const Team& team() const { return *team_; }
  const ComputeKernels& kernels() const { return *kernels_; }
  double activation_error() { return dram_->executor().activation_error(); }
  // When nothing is in flight.
  FlashCounters flash_counters() const { return flash_->counters(); }
  // Times a parked thread of an agent was woken, see Team::wake_ups for those of the workers.
  uint64_t agent_wake_ups() const;
  // Where weights stay. The agent writes to it while reads are in flight (Engine::drain).
  std::span<const std::byte> arena() const { return dram_->memory().first(dram_->staging_offset()); }
  const BlockDevice& device() const { return flash_->device(); }
  // What a decode step of a dense model takes from the arena and what it must bring in from flash, the
  // embedding's row aside. Of a cache that does not say beforehand what it keeps, nothing is promised.
  struct Traffic {
    uint64_t resident_bytes = 0;
    uint64_t streamed_bytes = 0;
    std::vector<FileRange> streamed;  // where those lie in the store's data file, in the order of a step
  };
  // Error: plugin_fault.
  Result<Traffic> planned_traffic() const;

 private:
  explicit Runtime(RunPlan plan) : plan_(std::move(plan)), budget_(plan_.memory.capacity) {}
  Status make_strategies();
  Status make_compute();
  Status make_flash(const RuntimeOptions& options);
  Status make_kernel();
  Status load_tensors();
  // With nothing in flight; the budget and the trace follow.
  Status replace(ChosenStrategy chosen, const StrategyConfig& strategy);
  Status recover();            // puts fallbacks in the place of quarantined strategies
  bool binds_workers() const;  // one a core, if there are enough
  Result<Agent*> on_thread(Agent& agent, const std::string& thread, const std::string& core, const char* key,
                           std::unique_ptr<AgentThread>& owner);

  RunPlan plan_;
  bool quiet_ = false;
  Budget budget_;
  PoolTable pools_;
  const ComputeKernels* kernels_ = nullptr;
  std::unique_ptr<Team> team_;
  std::unique_ptr<StrategySet> strategies_;
  std::vector<uint32_t> slots_;  // [sites]
  std::vector<ExtentRef> extents_;
  std::unique_ptr<DramAgent> dram_;
  std::unique_ptr<FlashAgent> flash_;
  std::unique_ptr<AgentThread> dram_thread_;
  std::unique_ptr<AgentThread> flash_thread_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace tierd
