#include "core/time/unit_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tierd {
namespace {

// One GB/s of memory; weights at 2 GB/s for one token, 4 G multiply-adds a second for many.
ProcessorDescription processor() {
  return {.memory_rate = 1e9, .rates = {{Encoding::f32, false, 2e9, 4e9}}};
}

ComputePlan plan_in_f32(Cut cut) {
  ComputePlan plan;
  SiteWork site;
  site.cut = std::move(cut);
  site.editions = {0};
  site.before = {{.kind = StepKind::rms_norm, .width = 4000}};  // 1 us a row
  site.after = {{.kind = StepKind::attend, .width = 0}};
  plan.editions = {{Encoding::f32}};
  plan.sites = {site};
  plan.attention.n_layers = 1;
  plan.attention.n_heads = 4;
  plan.attention.n_kv_heads = 2;
  plan.attention.head_dim = 25;
  return plan;
}

class Costs : public testing::Test {
 protected:
  uint64_t ns(uint8_t flags, size_t neurons, uint16_t rows, uint32_t position = 0) const {
    const std::vector<Unit> units(neurons);
    const std::vector<RowInfo> infos(rows, RowInfo{.position = position});
    Message message;
    message.op = Op::run;
    message.flags = flags;
    message.rows = rows;
    return cost_->ns(message, {.units = units, .rows = infos}, false);
  }
  // A neuron: 1000 inputs, 16 outputs, 64,000 bytes.
  const Result<UnitCost> cost_ =
      UnitCost::create(processor(), plan_in_f32(Rows{.n_in = 1000, .stacked = {160}, .rows = 16}));
};

TEST_F(Costs, OneTokenIsBoundByMemoryAndManyByMultiplications) {
  ASSERT_TRUE(cost_.ok());
  EXPECT_EQ(ns(0, 1, 1), 32'000u);
  EXPECT_EQ(ns(0, 3, 1), 96'000u);
  EXPECT_EQ(ns(0, 1, 8), 32'000u);  // 16,000 weights times 8 at 4e9
  EXPECT_EQ(ns(0, 1, 16), 64'000u);
  EXPECT_EQ(ns(0, 0, 1), 0u);
}

// Weights at 2 GB/s, columns at 1; with int8 at 4 and 2, and after a wait at 1 and .5. A channel of 1024
// outputs has 4096 bytes in f32 and 1088 in q8_0. A bundle has three rows of this size, of which `down`
// counts as a column and is always multiplied with floats.
TEST(UnitCosts, ColumnsHaveARateOfTheirOwn) {
  const ProcessorDescription described = {.memory_rate = 1e9,
                                          .rates = {{Encoding::f32, false, 2e9, 1e12, 1e9},
                                                    {Encoding::q8_0, false, 2e9, 1e12, 1e9},
                                                    {Encoding::q8_0, true, 4e9, 1e12, 2e9, 1e9, 5e8}}};
  const auto ns_of_one = [&](Cut cut, Encoding encoding, bool after_wait = false) {
    ComputePlan of = plan_in_f32(std::move(cut));
    of.editions = {Encodings(of.sites[0].cut.index() == 0 ? 1 : 3, encoding)};
    of.int8_activations = true;
    const auto cost = UnitCost::create(described, of);
    EXPECT_TRUE(cost.ok());
    const std::vector<Unit> units(1);
    const std::vector<RowInfo> infos(1);
    Message message;
    message.op = Op::run;
    message.rows = 1;
    return cost->ns(message, {.units = units, .rows = infos}, after_wait);
  };
  EXPECT_EQ(ns_of_one(Columns{.n_in = 10, .n_out = 1024}, Encoding::f32), 4'096u);
  EXPECT_EQ(ns_of_one(Columns{.n_in = 10, .n_out = 1024}, Encoding::q8_0), 544u);
  EXPECT_EQ(ns_of_one(Columns{.n_in = 10, .n_out = 1024}, Encoding::q8_0, true), 4 * 544u);
  EXPECT_EQ(ns_of_one(Rows{.n_in = 1024, .stacked = {16}, .rows = 16}, Encoding::q8_0, true), 16 * 1'088u);
  EXPECT_EQ(ns_of_one(Columns{.n_in = 10, .n_out = 1024}, Encoding::f32, true), 4'096u) << "not measured";
  EXPECT_EQ(ns_of_one(Bundles{.width = 1024, .inner = 10, .gated = true}, Encoding::q8_0), 2 * 544u + 1'088u);
}

TEST_F(Costs, SegmentsAreCountedWhereTheyRun) {
  EXPECT_EQ(ns(kRunBefore, 0, 3), 3'000u);
  // Keys and values of 50 floats in f16: 200 bytes a position.
  EXPECT_EQ(ns(kRunAfter, 0, 1, 9), 2'000u);
  EXPECT_EQ(ns(kRunBefore | kRunAfter, 1, 1, 9), 1'000u + 32'000u + 2'000u);
}

TEST(UnitCosts, AssumedConstantsAreTheDescriptions) {
  ProcessorDescription described = processor();
  described.floats_rate = 1e9;
  described.after_wait_ns = 7;
  ComputePlan of = plan_in_f32(Columns{.n_in = 64, .n_out = 64});
  of.sites[0].before = {{.kind = StepKind::rms_norm, .width = 1000}};
  const auto cost = UnitCost::create(described, of);
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->wait_ns(), 7u);
  const std::vector<RowInfo> infos(1);
  Message message;
  message.op = Op::run;
  message.flags = kRunBefore;
  message.rows = 1;
  EXPECT_EQ(cost->ns(message, {.rows = infos}, false), 1'000u);
}

TEST_F(Costs, MovesAreReadAndWritten) {
  const std::vector<Unit> units(4);
  Message message;
  message.op = Op::move;
  message.unit_bytes = 1000;
  EXPECT_EQ(cost_->ns(message, {.units = units}, false), 8'000u);
  message.op = Op::resize;
  EXPECT_EQ(cost_->ns(message, {.units = units}, false), 0u);
}

TEST(UnitCosts, WhatComesOverALinkTakesItsTime) {
  const auto cost = UnitCost::create(processor(), plan_in_f32(Columns{.n_in = 64, .n_out = 64}),
                                     LinkDescription{.to = "gpu", .rate = 2e9, .latency_ns = 700});
  ASSERT_TRUE(cost.ok());
  const std::vector<Unit> units(4);
  Message message;
  message.op = Op::move;
  message.unit_bytes = 1000;
  message.from = 1;
  message.memory = 2;
  EXPECT_EQ(cost->ns(message, {.units = units}, false), 2'700u);
  message.from = 2;
  EXPECT_EQ(cost->ns(message, {.units = units}, false), 8'000u) << "inside a memory nothing crosses the link";
}

TEST(UnitCosts, WhatIsNotDescribedIsNamed) {
  ComputePlan of_blocks = plan_in_f32(Columns{.n_in = 64, .n_out = 64});
  of_blocks.editions = {{Encoding::q4_0}};
  of_blocks.int8_activations = true;
  const auto cost = UnitCost::create(processor(), of_blocks);
  ASSERT_FALSE(cost.ok());
  EXPECT_THAT(cost.error().line(), testing::HasSubstr("the description has no rate for q4_0 x int8"));
}

}  // namespace
}  // namespace tierd
