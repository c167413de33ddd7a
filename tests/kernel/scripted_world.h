// A kernel between a flash agent whose reads end when the test says so, a compute agent that remembers what
// it was asked, at will a memory between the two, and strategies whose answers the test gives.
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

// Neurons of a summed site that are summed together.
inline constexpr uint32_t kRun = 64;
// Columns of what a site computes from, and of what it gives.
inline constexpr uint32_t kInputs = 3;
inline constexpr uint32_t kOutputs = 6;

struct WorldOptions {
  std::vector<uint32_t> neurons = {4, 4, 4};  // of each site
  std::vector<uint32_t> slots = {0, 0, 0};    // of each edition
  bool tied = false;  // the first site is given and has the edition of the last, none of its own
  uint32_t blocks = 8;
  uint32_t neurons_per_block = 1;
  uint32_t messages = 64;
  uint32_t credits = 64;
  uint32_t attempts = 3;
  bool prefetch = true;
  std::optional<uint64_t> seed = std::nullopt;
  uint32_t units = 1;         // that compute, with slots and blocks each
  bool linked_units = false;  // links lead from the memory of each to that of every other one
  bool side_by_side = false;  // neurons of one number, of all sites, which have as many
  uint32_t rows = 1;          // of a pass, at most 64
  bool bundles = false;       // axis neuron, which can tell what neurons give
  bool experts = false;       // axis expert: the segment before chooses, see contribution_value
  bool reads_x = false;       // the predictor does
  uint32_t measure_every = 0;
  uint32_t editions = 1;  // of each site, the next one's slots half as large, at most 3
  // Each edition is the source of another one, with slots twice as large, numbered behind all that are
  // stored: the units' memories hold those, or all memories do. Or a site's editions are made of its first
  // one, which alone is stored, where the units' memories hold them.
  enum class Made : uint8_t { none, above, everywhere, beside } made = Made::none;
  bool resizes = false;  // the units can: there are addresses for all neurons
  // A memory with these slots of each edition, which the units' memories lie over.
  std::optional<std::vector<uint32_t>> below = std::nullopt;
  uint32_t memories_below = 1;  // such ones, each over the next
  uint32_t blocks_below = 8;    // as large as the others'
  bool moves_itself = false;    // the one unit moves what comes from below: no agent is there for that
  bool direct = false;        // a link from the store leads to the units' memories beside the one from below
  bool reads_itself = false;  // of `direct`, where the one unit moves: it reads by itself, too
  bool joint_runs = false;    // the units take them
  std::vector<Flow> flows = {};  // of each site; else the first unit does all dense work
};

class ScriptedWorld {
 public:
  explicit ScriptedWorld(const WorldOptions& options,
                         const std::function<Strategies(ScriptedWorld&)>& chosen = {});

  // The scripted strategies answer as before a fault.
  void heal();

  // What happens when the kernel has nothing to do. Default: the oldest move ends, or the oldest read.
  std::function<void()> idle;

  Status run(Task<Status> task);
  Status pass(SiteId site, uint32_t step, const Neurons& given = {}, bool bypass = false);
  Status end_step(uint32_t step) { return run(scheduler->end_step(step)); }
  Status drain() { return run(scheduler->drain()); }
  // What the kernel does by itself, without any read ending.
  void settle();
  // Lets everything end that is under way, and what follows from it.
  void end_all();
  // How many neurons moves between memories were started for.
  size_t moved() const;
  // Who is dead neither reads nor moves what it had begun.
  void forget_what_died();
  // After drain: no message, no lease, no credit, no staging block has been lost.
  void expect_nothing_lost();
  void expect_nothing_lost(const Residency& of) const;
  // One line of the compute log for a site and step: "B1 2 A3": before, neurons a message, after.
  std::string computed(SiteId site, uint32_t step) const;
  // Every pass ran its segments once, in order, and each of `neurons` once.
  void expect_whole(SiteId site, uint32_t step, const Neurons& neurons) const;
  // The extents of the reads started so far, one read a bracket: "[3,4][7]".
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
  Script script_below;  // what the caches of the memories below answer
  const SiteTable sites;
  ManualFlash flash;
  ManualFlash mover;  // between the memories
  std::deque<RecordingCompute> computes;
  RecordingCompute& compute = computes.front();
  MovingCompute moving{compute, mover};
  std::deque<MortalAgent> mortals;  // stand before the units, the flash and the mover, in this order
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
