// An agent whose memory lies over another one. Its moves make other editions (kRecode).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>

#include "core/agent/pool.h"
#include "tests/dram/pruned_neurons.h"
#include "tiers/dram/dram_agent.h"

namespace tierd {

class AgentAbove {
 public:
  static constexpr MemoryId kBelow = 1, kAbove = 2;
  static constexpr uint32_t kMade = 1;  // the edition that moves make of the plan's first one
  static constexpr uint64_t kArena = 1 << 20, kStaging = 4096;

  // `stored` is the memory below and must outlive this object. Edition kMade has the encodings `made`.
  AgentAbove(PrunedNeurons& stored, const Encodings& made) : plan_(plan_of_pruned(stored, false, 1)) {
    pools_.add_memory(kBelow, std::as_writable_bytes(std::span(stored.memory)));
    plan_.editions.push_back(made);
    plan_.made = {std::nullopt, MadeNeurons{.of = 0, .site = 0}};
    DramAgent::Options options;
    options.number = 1;
    options.memory = kAbove;
    options.arena_bytes = kArena;
    options.staging_bytes = kStaging;
    auto agent = DramAgent::create(options, pools_, plan_, best_kernels(),
                                   std::make_unique<Team>(Team::Options{.workers = 2}));
    EXPECT_TRUE(agent.ok());
    agent_ = std::move(*agent);
  }

  // Also stores in `crossing` what the agent reports about the move.
  Done move(std::span<const Unit> units, std::span<const uint32_t> neurons, uint64_t unit_bytes,
            MemoryId from = kBelow) {
    Message message;
    message.op = Op::move;
    message.flags = kRecode;
    message.from = from;
    message.memory = kAbove;
    message.edition = kMade;
    message.unit_bytes = static_cast<uint32_t>(unit_bytes);
    crossing = agent_->crossing_bytes(message, {.units = units, .neurons = neurons});
    EXPECT_EQ(agent_->submit(message, {.units = units, .neurons = neurons}), Submit::ok);
    agent_->drive();
    Done done;
    EXPECT_EQ(agent_->poll({&done, 1}), 1u);
    return done;
  }
  std::span<const std::byte> memory() const { return pools_.memory(kAbove); }
  const ComputePlan& plan() const { return plan_; }

  uint64_t crossing = 0;

 private:
  PoolTable pools_;
  ComputePlan plan_;
  std::unique_ptr<DramAgent> agent_;
};

}  // namespace tierd
