// The objects of a plan: agents with their memories, strategies, dispatcher and scheduler. They refer to each
// other, so they are made and destroyed together. Agents and strategies are shared objects that the
// configuration names. A Runtime has one assembly, and replaces it to continue without a lost agent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/agent_thread.h"
#include "core/agent/counts.h"
#include "core/base/result.h"
#include "core/engine/engine.h"
#include "core/kernel/pass/scheduler.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/run/budget.h"
#include "core/run/run_plan.h"
#include "core/run/timeline_file.h"
#include "core/run/virtual_machine.h"
#include "core/strategy/strategy_set.h"
#include "core/watch/trace/recorder.h"

namespace tierd {

struct Assembly {
  // A resident tensor of the store, and its place in the memory of the agent that needs it.
  struct PlacedTensor {
    uint32_t tensor = 0;  // among Manifest::resident
    uint64_t offset = 0;
  };
  // The state of a tier with memories.
  struct TierState {
    Budget budget;
    bool whole = false;           // its arenas have addresses for every neuron
    uint64_t most_arena = 0;      // arena bytes that have addresses, summed over the memories
    uint64_t staging_offset = 0;  // in each memory
    std::vector<MadeAgent> agents = {};
    std::vector<std::vector<PlacedTensor>> tensors = {};     // [agents]
    std::vector<std::unique_ptr<AgentThread>> threads = {};  // empty, or [agents]
    AgentCounts before = {};                                 // of agents that were destroyed
  };

  // Only tensors are resident at first. The waiter outlives the assembly.
  static Result<std::unique_ptr<Assembly>> create(RunPlan plan, const RuntimeOptions& options,
                                                  Waiter& waiter);
  // Stops the agents, and waits for them; with nothing in flight.
  ~Assembly();
  // Destroys an assembly. If a thread is stuck in an agent, only the memory is returned to the system; all
  // other objects, with the engine, whose rows messages name, are kept until the process ends, because the
  // thread may use them.
  static void give_up(std::unique_ptr<Assembly> assembly, std::shared_ptr<const Engine> engine);
  // Stops the agents that can be stopped, and returns memory to the system; addresses and counters stay. The
  // assembly cannot be used afterwards. With nothing in flight.
  void give_back();
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  EngineParts engine_parts();
  // Returns whether anything is read and computed.
  bool executes() const { return !machine || machine->executes(); }
  Clock& clock() { return machine ? static_cast<Clock&>(machine->clock()) : wall; }
  // See Runtime::plays.
  Status plays() const { return machine->can_play(plan.model, strategies->strategies()); }
  bool binds_workers() const;                  // one worker a core, if there are enough cores
  uint64_t resident_bytes(size_t tier) const;  // slots of its memories
  const TierState& first_computing() const;
  // Returns the memories of a tier, as indices into [memories].
  std::vector<size_t> memories_of(size_t tier) const;

  RunPlan plan;
  uint32_t threads = 1;                     // threads that compute
  std::unique_ptr<VirtualMachine> machine;  // NULL: the wall clock is used
  WallClock wall;
  PoolTable pools;
  std::unique_ptr<StrategySet> strategies;
  std::deque<TierState> tiers;                        // in the order of TierTable::memories
  std::vector<uint64_t> parts;                        // [memories] bytes that its cache may share out
  std::vector<std::vector<uint32_t>> slots;           // [memories][editions]
  std::vector<std::vector<uint64_t>> arena_offset;    // [memories], see Memory
  std::vector<ExtentPieces> extent_pieces;            // of the store, for agents that read it
  std::vector<CompressedExtents> compressed_extents;  // likewise
  MadeAgent flash;
  AgentCounts flash_before;  // counters of earlier assemblies' agents
  std::unique_ptr<AgentThread> flash_thread;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<TimelineFile> timeline;
  std::unique_ptr<Dispatcher> dispatcher;
  std::deque<Residency> residencies;  // [memories]
  std::unique_ptr<Scheduler> scheduler;

 private:
  explicit Assembly(RunPlan of) : plan(std::move(of)) {}
  Status make_dispatcher(Waiter& waiter);
  Status make_tier(size_t tier, const RuntimeOptions& options);
  Result<MadeAgent> make_memory_agent(size_t tier, uint32_t i, const RuntimeOptions& options);
  Status make_strategies(const RuntimeOptions& asked);
  Status reserve(size_t tier);
  Status make_store_agent(const RuntimeOptions& options);
  ReadTask read_task(const RuntimeOptions& options) const;
  Status add_agents(std::vector<const Agent*>& agents);
  Status make_kernel(const RuntimeOptions& options);
  // Sets the observer of the run.
  Status make_recording(const RuntimeOptions& asked, const Scheduler::Options& options,
                        const std::vector<const Agent*>& agents);
  // The tensors of a unit follow its staging, in the order in which its plan numbers them.
  std::vector<PlacedTensor> place_tensors(std::span<const uint32_t> resident, ComputeTask& task) const;
  // Returns a core for each thread of one of a tier's agents.
  std::vector<uint32_t> cores_of(const Tier& tier, uint32_t agent) const;
  Status load_tensors();
  Status check_order(const ResidentTensor& tensor, std::span<const std::byte> bytes) const;
  // Returns [editions] slots for all neurons that a memory holds.
  std::vector<uint32_t> slots_for_all(MemoryId memory) const;
  uint64_t addresses_for_all(size_t tier) const;  // 0: more than messages can name
  Result<Agent*> on_thread(Agent& agent, const TierConfig& config, std::optional<uint32_t> core,
                           std::unique_ptr<AgentThread>& owner) const;
};

// Returns the agent's counters; zeros if it does not count.
inline AgentCounts counts_of(const MadeAgent& agent) {
  return agent.counts ? agent.counts() : AgentCounts();
}

}  // namespace tierd
