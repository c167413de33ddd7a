#include "tiers/dram/dram_agent.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/conformance/agent_suite.h"

namespace tierd {
namespace {

// A site with one neuron of 16 rows of 8 columns; weights are all one, so that outputs are the sum of inputs.
class DramWorld final : public AgentWorld {
 public:
  DramWorld() : team_({.workers = 1}) {
    EXPECT_EQ(pools_.add(0, std::as_writable_bytes(std::span(kernel_))), 0);
    ComputePlan plan;
    plan.buffers = {{"in", 8, 0}, {"out", 16, 0}};
    plan.max_rows = 1;
    plan.context = 1;
    SiteWork site;
    site.n_in = 8;
    site.n_out = 16;
    site.rows_per_neuron = 16;
    site.in = 0;
    site.out = 1;
    site.before = {{.kind = StepKind::add, .in = 0, .out = 0, .width = 8}};  // doubles
    site.after = {{.kind = StepKind::add, .in = 1, .out = 1, .width = 16}};  // doubles
    plan.sites = {site};
    auto executor = Executor::create(plan, best_kernels(), team_);
    EXPECT_TRUE(executor.ok());
    DramAgent::Options options;
    options.number = 1;
    options.arena_bytes = 4096;
    options.staging_bytes = 8192;
    options.tensor_bytes = 64;
    options.credits = 4;
    options.bytes_per_second = 1e9;
    auto agent = DramAgent::create(options, pools_, std::move(*executor));
    EXPECT_TRUE(agent.ok());
    agent_ = std::move(*agent);
    auto* weights = reinterpret_cast<float*>(agent_->memory().data() + 4096);
    std::fill_n(weights, 16 * 8, 1.0f);
    kernel_[0] = {{1, 1, 64, 0, 0}};
    auto* list = reinterpret_cast<std::byte*>(kernel_.data());
    const UnitList header{1, 1, 0};
    const Unit unit{0, 64};
    std::memcpy(list, &header, sizeof header);
    std::memcpy(list + sizeof header, &unit, sizeof unit);
  }
  Agent& agent() override { return *agent_; }
  DramAgent& dram() { return *agent_; }
  Message work() override {
    Message message = control(Op::compute, {});
    message.flags = kRunBefore | kRunAfter;
    message.list = {0, 0, 0, 16};
    return message;
  }
  Message control(Op op, const MessageId&) override {
    Message message;
    message.id = {next_++, 1};
    message.op = op;
    message.engine = EngineKind::compute;
    message.rows = 1;
    message.in = {0, 0, 1, sizeof(RowInfo)};
    message.list = {0, 0, 2, 8};  // no units
    return message;
  }
  void completed(const Message&, const Done&) override {}
  float* buffer(uint32_t b) {
    return reinterpret_cast<float*>(pools_.resolve({1, 1, 0, 128}).data()) + (b == 0 ? 0 : 16);
  }

 private:
  struct alignas(64) Line {
    uint32_t words[16];
  };
  Team team_;
  std::array<Line, 3> kernel_{};
  PoolTable pools_;
  std::unique_ptr<DramAgent> agent_;
  uint32_t next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Dram, AgentConformance,
                         testing::Values(AgentCase{"dram",
                                                   [](uint64_t) { return std::make_unique<DramWorld>(); }}),
                         case_name);

TEST(DramAgent, RunsSegmentsAroundTheNeurons) {
  DramWorld world;
  Agent& agent = world.agent();
  const auto ask = [&](Message message, uint8_t flags) {
    message.flags = flags;
    EXPECT_EQ(agent.submit(message), Submit::ok);
    EXPECT_EQ(agent.drive(), Drive::busy);
    Done done;
    EXPECT_EQ(agent.poll({&done, 1}), 1u);
    EXPECT_EQ(done.status, DoneStatus::ok);
    return done;
  };
  std::fill_n(world.buffer(0), 8, 1.0f);
  Message run = world.control(Op::run, {});
  ask(run, kRunBefore);
  EXPECT_EQ(world.buffer(0)[7], 2.0f);
  const Done done = ask(world.work(), 0);
  EXPECT_EQ(done.bytes, 16u * 8u * 4u);
  EXPECT_EQ(done.n_done, 1u);
  EXPECT_EQ(world.buffer(1)[0], 16.0f);
  ask(run, kRunAfter);
  EXPECT_EQ(world.buffer(1)[15], 32.0f);
  ask(world.work(), kRunBefore | kRunAfter);
  EXPECT_EQ(world.buffer(1)[3], 64.0f);
  EXPECT_EQ(world.buffer(0)[0], 4.0f);
  // Of a site whose neurons do not all come, the others are zero.
  ask(run, kRunBefore | kPartial);
  EXPECT_EQ(world.buffer(1)[3], 0.0f);
  EXPECT_EQ(world.buffer(1)[15], 0.0f);
}

TEST(DramAgent, WhatItCannotDoIsSaid) {
  DramWorld world;
  ASSERT_EQ(world.agent().submit(world.control(Op::read, {})), Submit::ok);
  world.agent().drive();
  Done done;
  ASSERT_EQ(world.agent().poll({&done, 1}), 1u);
  EXPECT_EQ(done.status, DoneStatus::invalid_argument);
}

TEST(DramAgent, ModelledTimeIsThatOfTheWeights) {
  DramWorld world;
  EXPECT_EQ(world.agent().service_ns(world.work()), 16u * 8u * 4u);  // at 1 GB/s
  EXPECT_EQ(world.agent().service_ns(world.control(Op::run, {})), 0u);
}

TEST(DramAgent, ArenaStagingAndTensorsFollowEachOther) {
  DramWorld world;
  EXPECT_EQ(world.dram().staging_offset(), 4096u);
  EXPECT_EQ(world.dram().tensor_offset(), 12288u);
  EXPECT_EQ(world.dram().memory().size(), 12352u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(world.dram().memory().data()) % 4096, 0u);
}

}  // namespace
}  // namespace tierd
