// The cost of units with a device of their own. Times are computed by hand.
#include <gtest/gtest.h>

#include <vector>

#include "core/time/unit_cost.h"
#include "tests/time/ddr4_3200.h"

namespace tierd {
namespace {

// One GB/s, 4 G operations a second, 10 us for each run.
UnitDescription gpu() {
  return {.device = GpuDescription{.memory_rate = 1e9, .flops = 4e9, .launch_ns = 10'000}};
}

// 16 multiply-adds a cycle at 1 GHz, followed by a tree of six levels.
UnitDescription dimm() {
  return {.device = NdpDimmDescription{.dram = ddr4_3200(),
                                       .core = {.clock_hz = 1e9,
                                                .multipliers = 8,
                                                .lanes = 8,
                                                .cycles_per_product = 4,
                                                .buffer_bytes = 16'384,
                                                .exponentials = 10,
                                                .additions = 10,
                                                .multiplications = 10}}};
}

ComputePlan plan_in_f16(Cut cut) {
  ComputePlan plan;
  SiteWork site;
  site.cut = std::move(cut);
  site.editions = {0};
  site.before = {{.kind = StepKind::rms_norm, .width = 1000}};
  site.after = {{.kind = StepKind::attend, .width = 0}};
  plan.editions = {{Encoding::f16}};
  plan.sites = {site};
  plan.attention.n_layers = 1;
  plan.attention.n_heads = 4;
  plan.attention.n_kv_heads = 2;
  plan.attention.head_dim = 25;
  return plan;
}

// A neuron: 1,024 inputs, 16 outputs, 32 KiB of f16.
constexpr uint32_t kNeuronUnits = 32'768 / kPlaceUnit;
ComputePlan rows_plan() {
  return plan_in_f16(Rows{.n_in = 1024, .stacked = {160}, .rows = 16});
}

uint64_t run_ns(const UnitCost& cost, uint8_t flags, uint32_t neurons, uint16_t rows, uint32_t position = 0,
                std::vector<Take> takes = {}) {
  std::vector<Unit> units;
  for (uint32_t i = 0; i < neurons; ++i) units.push_back({.unit = i, .place = i * kNeuronUnits});
  const std::vector<RowInfo> infos(rows, RowInfo{.position = position});
  Message message;
  message.op = Op::run;
  message.flags = flags;
  message.rows = rows;
  return cost.ns(message, {.units = units, .rows = infos, .takes = takes}, false);
}

TEST(GpuCost, ARunIsLaunchedAndBoundByMemoryOrByMultiplications) {
  const UnitCost cost(gpu(), rows_plan());
  EXPECT_EQ(run_ns(cost, 0, 1, 1), 10'000u + 32'768u);
  // 16,384 weights times 8 are 131,072 multiply-adds, of two operations each, at 4e9.
  EXPECT_EQ(run_ns(cost, 0, 1, 8), 10'000u + 65'536u);
  // 1,000 floats are read and written: 8,000 bytes.
  EXPECT_EQ(run_ns(cost, kRunBefore, 0, 1), 10'000u + 8'000u);
  // Ten positions: keys and values of 50 in f16 are 2,000 bytes; four heads of 25 multiply 2,000 times, 1 us.
  EXPECT_EQ(run_ns(cost, kRunAfter, 0, 1, 9), 10'000u + 2'000u);
}

// Several sites of one message are launched once.
TEST(GpuCost, AJointRunIsLaunchedOnce) {
  const UnitCost cost(gpu(), rows_plan());
  const std::vector<SiteRun> sites(3, SiteRun{.flags = kRunBefore});
  const std::vector<RowInfo> infos(1);
  Message message;
  message.op = Op::run;
  message.rows = 1;
  message.n_sites = 3;
  EXPECT_EQ(cost.ns(message, {.rows = infos, .sites = sites}, false), 10'000u + 3 * 8'000u);
}

// 32 KiB are 128 bursts of each rank: 24 + 127 * 4 + 28 = 560 cycles at 1.6 GHz, 350 ns. 16,384 products are
// 256 turns of 4 cycles and 6 levels of the tree: 1,030 ns.
TEST(NdpCost, NeuronsAreBoundByDramOrByMultipliers) {
  UnitDescription fast = dimm();
  std::get<NdpDimmDescription>(fast.device).core.multipliers = 512;
  // 4,096 products a turn: 4 turns of 4 cycles and 12 levels are 28 ns.
  EXPECT_EQ(run_ns(UnitCost(fast, rows_plan()), 0, 1, 1), 350u);
  // Adjacent neurons stream: 24 + 1,279 * 4 + 28 = 5,168 cycles.
  EXPECT_EQ(run_ns(UnitCost(fast, rows_plan()), 0, 10, 1), 3'230u);
  EXPECT_EQ(run_ns(UnitCost(dimm(), rows_plan()), 0, 1, 1), 1'030u);
}

// 16 KiB hold, for each of seven rows, 1,170 values: all 1,024 inputs and a burst of results; for each of
// eight rows, 1,024 values. The sixteen results are then one tile, for which the inputs of all rows are read:
// 16,384 bytes at 102.4 GB/s.
TEST(NdpCost, InputsThatTheBufferDoesNotHoldAreReadBesideTheWeights) {
  UnitDescription fast = dimm();
  std::get<NdpDimmDescription>(fast.device).core.multipliers = 1 << 16;
  const UnitCost cost(fast, rows_plan());
  EXPECT_EQ(run_ns(cost, 0, 1, 7), 350u);
  EXPECT_NEAR(run_ns(cost, 0, 1, 8), 350 + 160, 1);
  EXPECT_NEAR(run_ns(cost, 0, 1, 16), 350 + 320, 1);
}

// Two neurons and two rows, one of which does not use the second neuron: three times 16,384 products are 768
// turns of 4 cycles, and 6 levels.
TEST(NdpCost, RowsThatDoNotUseANeuronHaveNoProductWithIt) {
  const UnitCost cost(dimm(), rows_plan());
  const std::vector<Unit> units = {{.unit = 0, .place = 0}, {.unit = 1, .place = kNeuronUnits}};
  const std::vector<RowInfo> rows(2);
  const std::vector<uint64_t> masks = {0b11, 0b01};
  Message message;
  message.op = Op::run;
  message.rows = 2;
  EXPECT_EQ(cost.ns(message, {.units = units, .rows = rows}, false), 4'102u);
  EXPECT_EQ(cost.ns(message, {.units = units, .rows = rows, .masks = masks}, false), 3'078u);
}

// 100,000 positions of 200 bytes are 312,500 bursts, 78,125 of each rank: 24 + 78,124 * 4 + 28 = 312,548
// cycles. 400,000 scores take 40,000 cycles each of exponentials, additions and multiplications.
TEST(NdpCost, AttentionReadsTheCacheAndTakesExponentials) {
  UnitDescription fast = dimm();
  std::get<NdpDimmDescription>(fast.device).core.multipliers = 1 << 16;
  EXPECT_EQ(run_ns(UnitCost(fast, rows_plan()), kRunAfter, 0, 1, 99'999), 195'342u + 120'000u);
  // 1,000 floats: 100 cycles of additions and as many of multiplications.
  EXPECT_EQ(run_ns(UnitCost(fast, rows_plan()), kRunBefore, 0, 1), 200u);
}

// Between the halves of a network a neuron has one value: compared, or put into an exponential.
TEST(NdpCost, NeuronsOfANetworkAreActivated) {
  UnitDescription fast = dimm();
  std::get<NdpDimmDescription>(fast.device).core.multipliers = 1 << 16;
  const auto ns = [&](Activation activation) {
    ComputePlan network = plan_in_f16(Bundles{.width = 1024, .inner = 100, .gated = false});
    network.sites[0].ffn.activation = activation;
    network.editions = {{Encoding::f16, Encoding::f16}};
    return run_ns(UnitCost(fast, std::move(network)), 0, 100, 1);
  };
  const uint64_t relu = ns(Activation::relu);
  EXPECT_EQ(ns(Activation::relu_squared), relu + 10);
  EXPECT_EQ(ns(Activation::silu), relu + 20);
}

TEST(DeviceCost, WhatIsTakenCrossesTheLink) {
  const LinkDescription link{.to = "gpu", .rate = 2e9, .latency_ns = 700};
  const std::vector<Take> takes(2, Take{.columns = 1000});
  // Each take: 4,000 bytes a row at 2 GB/s, and the latency once.
  EXPECT_EQ(run_ns(UnitCost(gpu(), rows_plan(), link), 0, 0, 2, 0, takes), 10'000u + 2 * (700 + 4'000));
  EXPECT_EQ(run_ns(UnitCost(gpu(), rows_plan()), 0, 0, 2, 0, takes), 10'000u + 2 * 16'000u);
}

TEST(DeviceCost, MovesTakeTheLinkFromWhereTheyCome) {
  UnitCost cost(gpu(), rows_plan(), LinkDescription{.to = "gpu", .rate = 1e9, .latency_ns = 0});
  cost.set_links({std::nullopt, LinkDescription{.to = "gpu", .rate = 4e9, .latency_ns = 100}, std::nullopt,
                  LinkDescription{.to = "gpu", .rate = 2e9, .latency_ns = 50}});
  const std::vector<Unit> units(4);
  Message message;
  message.op = Op::move;
  message.unit_bytes = 1000;
  message.memory = 5;
  const auto from = [&](MemoryId memory) {
    message.from = memory;
    return cost.ns(message, {.units = units}, false);
  };
  EXPECT_EQ(from(1), 100u + 1'000u);
  EXPECT_EQ(from(2), 8'000u) << "no link leads from there: read and written";
  EXPECT_EQ(from(3), 50u + 2'000u);
  EXPECT_EQ(from(4), 4'000u) << "nothing was said of it: the one that carries what is taken";
  message.memory = 3;
  EXPECT_EQ(from(3), 8'000u) << "inside a memory nothing crosses a link";
}

// Four neurons of 1,000 bytes cross the link and become 131,072 bytes, which are expanded at 1 GB/s.
TEST(DeviceCost, BitmapsAreExpandedWhenTheyAreThere) {
  ComputePlan of_bitmaps = rows_plan();
  of_bitmaps.editions = {{Encoding::f16}, {Encoding::f16}};
  of_bitmaps.compressed = {CompressedNeurons{}, std::nullopt};
  of_bitmaps.made = {std::nullopt, MadeNeurons{.of = 0, .site = 0}};
  UnitDescription expands = gpu();
  const std::vector<Unit> units(4);
  Message message;
  message.op = Op::move;
  message.flags = kRecode;
  message.edition = 1;
  message.unit_bytes = 1000;
  message.from = 1;
  message.memory = 2;
  const LinkDescription link{.to = "gpu", .rate = 1e9, .latency_ns = 0};
  EXPECT_EQ(UnitCost(expands, of_bitmaps, link).ns(message, {.units = units}, false), 4'000u);
  std::get<GpuDescription>(expands.device).expand_rate = 1e9;
  EXPECT_EQ(UnitCost(expands, of_bitmaps, link).ns(message, {.units = units}, false), 4'000u + 131'072u);
}

// Multiplying from bitmaps takes longer by the time to expand two neurons of 32,768 bytes at 1 GB/s.
TEST(DeviceCost, WhatIsMultipliedFromBitmapsIsExpandedForThat) {
  ComputePlan of_bitmaps = rows_plan();
  const uint64_t dense = run_ns(UnitCost(gpu(), of_bitmaps), 0, 2, 1);
  of_bitmaps.compressed = {CompressedNeurons{}};
  UnitDescription expands = gpu();
  EXPECT_EQ(run_ns(UnitCost(expands, of_bitmaps), 0, 2, 1), dense);
  std::get<GpuDescription>(expands.device).expand_rate = 1e9;
  EXPECT_EQ(run_ns(UnitCost(expands, of_bitmaps), 0, 2, 1), dense + 65'536u);
}

TEST(DeviceCost, AMoveTakesTurnsWithTheDiskWhereItsLinkDoes) {
  LinkDescription link{.to = "gpu", .rate = 1e9, .latency_ns = 0};
  Message move;
  move.op = Op::move;
  move.from = 1;
  move.memory = 2;
  EXPECT_FALSE(UnitCost(gpu(), rows_plan(), link).takes_turns_with_disk(move));
  link.beside_disk = false;
  const UnitCost cost(gpu(), rows_plan(), link);
  EXPECT_TRUE(cost.takes_turns_with_disk(move));
  move.from = 2;
  EXPECT_FALSE(cost.takes_turns_with_disk(move)) << "inside a memory nothing crosses a link";
  move.from = 1;
  move.op = Op::run;
  EXPECT_FALSE(cost.takes_turns_with_disk(move));
}

}  // namespace
}  // namespace tierd
