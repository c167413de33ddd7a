// A kernel with a flash agent whose reads end when the test says so, recording compute agents, optional
// memories between them, and strategies whose answers the test gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/pass/scheduler.h"
#include "core/kernel/post/dispatcher.h"
#include "tests/kernel/mortal_agent.h"
#include "tests/kernel/scripted_agents.h"
#include "tests/kernel/scripted_strategies.h"

namespace tierd {

// The neurons of one run of a summed site.
inline constexpr uint32_t kRun = 64;
// The columns of a site's input and output.
inline constexpr uint32_t kInputs = 3;
inline constexpr uint32_t kOutputs = 6;

struct WorldOptions {
  std::vector<uint32_t> neurons = {4, 4, 4};  // of each site
  std::vector<uint32_t> slots = {0, 0, 0};    // of each edition
  bool tied = false;                          // the first site is given and shares the last one's edition
  uint32_t blocks = 8;
  uint32_t neurons_per_block = 1;
  uint32_t messages = 64;
  uint32_t credits = 64;
  uint32_t attempts = 3;
  bool prefetch = true;
  std::optional<uint64_t> seed = std::nullopt;
  uint32_t units = 1;         // computing units, each with its own slots and blocks
  bool linked_units = false;  // links lead from each unit's memory to every other one's
  bool side_by_side = false;  // neurons of one number are contiguous; all sites have as many neurons
  uint32_t rows = 1;          // of a pass, at most 64
  bool bundles = false;       // axis neuron, which can report contributions
  bool experts = false;       // axis expert: the segment before chooses, see contribution_value
  bool reads_x = false;       // the predictor reads activations
  uint32_t measure_every = 0;
  uint32_t editions = 1;  // of each site, at most 3, each with slots half as large as the one before
  // above: from each edition another is made, with slots twice as large, numbered behind all that are stored;
  // the units' memories hold the made ones. everywhere: all memories do. beside: only a site's first edition
  // is stored, and the units' memories hold the others, made of it.
  enum class Made : uint8_t { none, above, everywhere, beside } made = Made::none;
  bool resizes = false;  // the units can resize: all neurons have addresses
  // A memory under the units' memories, with these slots of each edition.
  std::optional<std::vector<uint32_t>> below = std::nullopt;
  uint32_t memories_below = 1;   // memories of this kind, each over the next
  uint32_t blocks_below = 8;     // as large as the other blocks
  bool moves_itself = false;     // the only unit's agent moves from below; there is no other mover
  bool direct = false;           // a second link leads from the store to the units' memories
  bool reads_itself = false;     // with `direct` and `moves_itself`: the unit's agent also reads
  bool joint_runs = false;       // the units accept joint runs
  std::vector<Flow> flows = {};  // of each site; default: the first unit does all dense work
};

class ScriptedWorld {
 public:
  explicit ScriptedWorld(const WorldOptions& options,
                         const std::function<Strategies(ScriptedWorld&)>& chosen = {});

  // Makes the scripted strategies answer as before a fault.
  void heal();

  // Called when the kernel has nothing to do. Default: ends the oldest move, or else the oldest read.
  std::function<void()> idle;

  Status run(Task<Status> task);
  Status pass(SiteId site, uint32_t step, const Neurons& given = {}, bool bypass = false);
  Status end_step(uint32_t step) { return run(scheduler->end_step(step)); }
  Status drain() { return run(scheduler->drain()); }
  // Lets the kernel run without ending any read or move.
  void settle();
  // Ends everything in flight, and what follows from it.
  void end_all();
  // Returns the number of neurons for which moves were started.
  size_t moved() const;
  // Drops the open reads and moves of dead agents.
  void forget_what_died();
  // Drains, then expects that no message, lease, credit or staging block is lost.
  void expect_nothing_lost();
  void expect_nothing_lost(const Residency& of) const;
  // Returns the compute log of a site and step, "B1 2 A3": before, the neurons of each message, after.
  std::string computed(SiteId site, uint32_t step) const;
  // Expects that every pass ran its segments once, in order, and each of `neurons` once.
  void expect_whole(SiteId site, uint32_t step, const Neurons& neurons) const;
  // Returns the extents of the reads started so far, one bracket a read: "[3,4][7]".
  std::string reads() const;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  bool is_shuffled() const { return options_.seed.has_value(); }
  uint16_t add_agent(Agent& agent);
  void add_memories(Topology& topology);
  Memory add_memory(MemoryId id, uint16_t agent, const std::vector<uint32_t>& slots, uint32_t blocks);
  void add_unit(Topology& topology, RecordingCompute& unit);

  WorldOptions options_;
  PoolTable pools_;
  std::deque<std::vector<Line>> memory_;
  uint64_t turns_ = 0;

 public:
  Script script;
  Script script_below;  // of the caches of the memories below
  const SiteTable sites;
  ManualFlash flash;
  ManualFlash mover;  // between the memories
  std::deque<RecordingCompute> computes;
  RecordingCompute& compute = computes.front();
  MovingCompute moving{compute, mover};
  std::deque<MortalAgent> mortals;  // before the units, the flash agent and the mover, in this order
  WallClock clock;
  Waiter waiter;
  Dispatcher dispatcher;
  std::deque<Residency> residencies;  // [memories]
  Residency& residency;               // of the first unit's memory
  Placement placement;
  std::vector<std::string> order;  // what the units did
  Strategies strategies;
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace tierd
