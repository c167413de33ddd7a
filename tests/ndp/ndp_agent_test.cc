#include "tiers/ndp/ndp_agent.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/dram/pruned_neurons.h"
#include "tests/tier/conform/agent_cases.h"

namespace tierd {
namespace {

INSTANTIATE_TEST_SUITE_P(Ndp, AgentConformance, testing::ValuesIn(rule_cases("ndp")), case_name);
INSTANTIATE_TEST_SUITE_P(NdpOverALink, AgentConformance,
                         testing::ValuesIn(rule_cases("ndp", {{"link_rate", std::string("1 GB"), "test"}})),
                         case_name);

class ManualClock final : public Clock {
 public:
  uint64_t now_ns() const override { return ns; }
  bool wait(Waiter&) override { return false; }
  uint64_t ns = 1000;
};

// A DIMM that fetches from another one over a link of 64 bytes a nanosecond and 100 ns.
class NdpLink : public testing::Test {
 protected:
  static constexpr MemoryId kOther = 1, kOwn = 2;
  static constexpr uint64_t kArena = 1 << 20;

  NdpLink() : stored_(Cut(Bundles{96, 150, true}), false, Random(4)) {
    pools_.add_memory(kOther, std::as_writable_bytes(std::span(stored_.memory)));
    DramAgent::Options options;
    options.number = 1;
    options.memory = kOwn;
    options.arena_bytes = kArena;
    options.credits = 4;
    auto dimm = DramAgent::create(options, pools_, plan_of_pruned(stored_, false, 1), best_kernels(),
                                  std::make_unique<Team>(Team::Options{.workers = 1}));
    EXPECT_TRUE(dimm.ok());
    auto agent =
        NdpAgent::create(std::move(*dimm), {.bytes_per_second = 64'000'000'000, .latency_ns = 100}, clock_);
    EXPECT_TRUE(agent.ok());
    agent_ = std::move(*agent);
  }

  Message move(uint32_t slot, uint32_t bytes, Priority priority = Priority::migration) {
    Message message;
    message.id = {slot, 1};
    message.op = Op::move;
    message.lane = 1;
    message.priority = priority;
    message.from = kOther;
    message.memory = kOwn;
    message.unit_bytes = bytes;
    return message;
  }
  std::vector<uint32_t> over() {
    while (agent_->drive() == Drive::busy) {
    }
    std::vector<Done> done(8);
    done.resize(agent_->poll(done));
    std::vector<uint32_t> slots;
    for (const Done& one : done) slots.push_back(one.id.slot);
    return slots;
  }
  bool has_come(const Unit& unit, uint32_t bytes) const {
    return std::memcmp(pools_.memory(kOwn).data() + unit.place * kPlaceUnit,
                       pools_.memory(kOther).data() + unit.unit * kPlaceUnit, bytes) == 0;
  }

  ManualClock clock_;
  PoolTable pools_;
  PrunedNeurons stored_;
  std::unique_ptr<NdpAgent> agent_;
};

TEST_F(NdpLink, AMoveTakesAsLongAsTheLink) {
  const Unit unit{0, 4};
  ASSERT_EQ(agent_->submit(move(1, 6400), {.units = {&unit, 1}}), Submit::ok);
  EXPECT_TRUE(over().empty());
  EXPECT_TRUE(agent_->waiting());
  clock_.ns = 1199;
  EXPECT_TRUE(over().empty());
  EXPECT_FALSE(has_come(unit, 6400)) << "nothing is there before it is over";
  clock_.ns = 1200;
  EXPECT_EQ(over(), std::vector<uint32_t>{1});
  EXPECT_TRUE(has_come(unit, 6400));
  EXPECT_FALSE(agent_->waiting());
}

TEST_F(NdpLink, WhatIsComputedDoesNotWaitForIt) {
  const Unit unit{0, 4};
  ASSERT_EQ(agent_->submit(move(1, 6400), {.units = {&unit, 1}}), Submit::ok);
  Message run;
  run.id = {2, 1};
  run.op = Op::run;
  run.memory = kOwn;
  const RowInfo row;
  run.rows = 1;
  ASSERT_EQ(agent_->submit(run, {.rows = {&row, 1}}), Submit::ok);
  run.id = {3, 1};
  run.about = {1, 1};
  ASSERT_EQ(agent_->submit(run, {.rows = {&row, 1}}), Submit::ok);
  EXPECT_EQ(over(), std::vector<uint32_t>{2}) << "the other run is behind the move";
  clock_.ns = 5000;
  EXPECT_EQ(over(), (std::vector<uint32_t>{1, 3}));
}

TEST_F(NdpLink, TheMostUrgentCrossesNextAndAWithdrawnOneDoesNot) {
  const Unit units[] = {{0, 4}, {0, 200}, {0, 400}};
  for (uint32_t i = 0; i < 3; ++i) {
    const Priority priority = i == 2 ? Priority::demand : Priority::migration;
    ASSERT_EQ(agent_->submit(move(i + 1, 6400, priority), {.units = {&units[i], 1}}), Submit::ok);
    EXPECT_TRUE(i != 0 || over().empty()) << "it has been begun";
  }
  Message cancel;
  cancel.id = {9, 1};
  cancel.op = Op::cancel;
  cancel.about = {2, 1};
  ASSERT_EQ(agent_->submit(cancel, {}), Submit::ok);
  EXPECT_EQ(agent_->submit(move(8, 64), {.units = {units, 1}}), Submit::busy) << "four credits";
  EXPECT_EQ(over(), (std::vector<uint32_t>{2, 9}));
  clock_.ns = 1200;
  EXPECT_EQ(over(), std::vector<uint32_t>{1});
  clock_.ns = 1400;
  EXPECT_EQ(over(), std::vector<uint32_t>{3});
  EXPECT_FALSE(has_come(units[1], 6400));
}

}  // namespace
}  // namespace tierd
