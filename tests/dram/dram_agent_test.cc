#include "tiers/dram/dram_agent.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/tier/conform/agent_cases.h"

namespace tierd {
namespace {

// A site with one neuron of 16 rows of 8 columns, all weights one: each output is the sum of the inputs.
class DramWorld {
 public:
  explicit DramWorld(uint64_t arena_bytes = 4096, Cut cut = Rows{.n_in = 8, .stacked = {16}, .rows = 16}) {
    ComputePlan plan;
    plan.buffers = {{"in", 8, 0}, {"out", 16, 0}};
    plan.max_rows = 1;
    plan.context = 1;
    SiteWork site;
    site.cut = std::move(cut);
    site.editions = {0};
    plan.editions = {{Encoding::f32}};
    site.in = 0;
    site.out = 1;
    site.before = {{.kind = StepKind::add, .in = 0, .out = 0, .width = 8}};  // doubles
    site.after = {{.kind = StepKind::add, .in = 1, .out = 1, .width = 16}};  // doubles
    plan.sites = {site};
    DramAgent::Options options;
    options.number = 1;
    options.arena_bytes = arena_bytes;
    options.staging_bytes = 8192;
    options.tensor_bytes = 64;
    options.credits = 4;
    auto agent =
        DramAgent::create(options, pools_, plan, best_kernels(), std::make_unique<Team>(Team::Options{}));
    EXPECT_TRUE(agent.ok());
    agent_ = std::move(*agent);
    auto* weights = reinterpret_cast<float*>(memory().data() + 4096);
    std::fill_n(weights, 16 * 8, 1.0f);
  }
  DramAgent& agent() { return *agent_; }
  PoolTable& pools() { return pools_; }
  void end() { agent_.reset(); }
  std::span<std::byte> memory() const { return pools_.memory(kMemory); }
  Request work() { return about(Op::run, {0, 64}, kRunBefore | kRunAfter); }
  // A message without units.
  Request control(Op op, uint8_t flags = 0) {
    Request request;
    request.message.id = {next_++, 1};
    request.message.op = op;
    request.message.flags = flags;
    request.message.memory = kMemory;
    request.message.rows = 1;
    request.payload.rows = rows_;
    return request;
  }
  Request about(Op op, Unit unit, uint8_t flags = 0) {
    Request request = control(op, flags);
    unit_ = unit;
    request.message.n_units = 1;
    request.payload.units = {&unit_, 1};
    return request;
  }
  Done ask(const Request& request) {
    EXPECT_EQ(agent_->submit(request.message, request.payload), Submit::ok);
    EXPECT_EQ(agent_->drive(), Drive::busy);
    Done done;
    EXPECT_EQ(agent_->poll({&done, 1}), 1u);
    return done;
  }
  float* buffer(uint32_t b) {
    return reinterpret_cast<float*>(pools_.activations(1, 0, 128).data()) + (b == 0 ? 0 : 16);
  }

 private:
  static constexpr MemoryId kMemory = 1;
  const std::vector<RowInfo> rows_ = std::vector<RowInfo>(1);
  Unit unit_;
  PoolTable pools_;
  std::unique_ptr<DramAgent> agent_;
  uint32_t next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Dram, AgentConformance, testing::ValuesIn(rule_cases("dram")), case_name);

// Takes the input before the neurons and the results before the segment after, only in the named columns.
TEST(DramAgent, TakesColumnsOfOthers) {
  DramWorld world;
  std::vector<float> input(8, 100.0f), results(16, 1000.0f);
  std::fill_n(world.buffer(0), 8, 1.0f);
  const Take takes_input[] = {{.stride = 8, .first = 2, .columns = 3, .values = input.data()}};
  Request request = world.about(Op::run, {0, 64});
  request.payload.takes = takes_input;
  EXPECT_EQ(world.ask(request).status, DoneStatus::ok);
  EXPECT_EQ(world.buffer(0)[1], 1.0f);
  EXPECT_EQ(world.buffer(0)[2], 100.0f);
  EXPECT_EQ(world.buffer(0)[4], 100.0f);
  EXPECT_EQ(world.buffer(0)[5], 1.0f);
  EXPECT_EQ(world.buffer(1)[0], 305.0f);

  const uint32_t neuron = 0;
  const Take takes_results[] = {{.what = Take::What::results,
                                 .stride = 16,
                                 .first = 4,
                                 .columns = 8,
                                 .values = results.data(),
                                 .neurons = {&neuron, 1}}};
  request = world.control(Op::run, kRunAfter);
  request.payload.takes = takes_results;
  EXPECT_EQ(world.ask(request).status, DoneStatus::ok);
  EXPECT_EQ(world.buffer(1)[3], 610.0f);  // doubled
  EXPECT_EQ(world.buffer(1)[4], 2000.0f);
  EXPECT_EQ(world.buffer(1)[11], 2000.0f);
  EXPECT_EQ(world.buffer(1)[12], 610.0f);
}

TEST(DramAgent, RunsSegmentsAroundTheNeurons) {
  DramWorld world;
  const auto ask = [&](Request request, uint8_t flags) {
    request.message.flags = flags;
    const Done done = world.ask(request);
    EXPECT_EQ(done.status, DoneStatus::ok);
    return done;
  };
  std::fill_n(world.buffer(0), 8, 1.0f);
  const Request run = world.control(Op::run);
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
  // With kPartial, the results of neurons that are not computed are zero.
  ask(run, kRunBefore | kPartial);
  EXPECT_EQ(world.buffer(1)[3], 0.0f);
  EXPECT_EQ(world.buffer(1)[15], 0.0f);
}

TEST(DramAgent, WhatItCannotDoIsSaid) {
  DramWorld world;
  EXPECT_EQ(world.ask(world.control(Op::read)).status, DoneStatus::invalid_argument);
}

TEST(DramAgent, MovesASlotAndGivesTheRestBack) {
  constexpr uint64_t kArena = 16 * 4096;
  DramWorld world(kArena);
  const auto ask = [&](const Request& request) {
    const Done done = world.ask(request);
    EXPECT_EQ(done.status, DoneStatus::ok);
    EXPECT_EQ(done.n_done, 1u);
    return done;
  };
  const auto resident = [&] {
    std::vector<unsigned char> pages(kArena / 4096);
    EXPECT_EQ(mincore(world.memory().data(), kArena, pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  };
  std::fill_n(world.memory().data() + 4096 + 512, kArena - 4096 - 512, std::byte{9});
  std::fill_n(world.memory().data() + kArena, 8192, std::byte{7});  // staging
  Request move = world.about(Op::move, {64, 2});
  move.message.from = 1;
  move.message.unit_bytes = 512;
  EXPECT_EQ(ask(move).bytes, 512u);
  EXPECT_EQ(resident(), 16);
  ask(world.about(Op::resize, {2, 10}));
  EXPECT_EQ(resident(), 1);
  EXPECT_EQ(world.memory()[kArena + 8191], std::byte{7});
  std::fill_n(world.buffer(0), 8, 1.0f);
  ask(world.about(Op::run, {0, 2}));
  EXPECT_EQ(world.buffer(1)[15], 8.0f);
  ask(world.about(Op::resize, {0, kArena / 64}));
  EXPECT_EQ(world.memory()[kArena - 1], std::byte{0});
  EXPECT_EQ(resident(), 16) << "committed at once";
}

TEST(DramAgent, MovesTheBytesOfEachNeuronAlone) {
  DramWorld world(16 * 4096);
  const auto memory = world.memory();
  std::fill_n(memory.data(), 1024, std::byte{5});
  std::fill_n(memory.data() + 4096, 1024, std::byte{9});
  const std::vector<Unit> units = {{0, 64}, {8, 72}};
  const std::vector<uint32_t> lengths = {128, 512};
  Request move = world.about(Op::move, {0, 64});
  move.message.from = 1;
  move.message.unit_bytes = 512;
  move.message.n_units = 2;
  move.payload.units = units;
  move.payload.lengths = lengths;
  const Done done = world.ask(move);
  EXPECT_EQ(done.status, DoneStatus::ok);
  EXPECT_EQ(done.n_done, 2u);
  EXPECT_EQ(done.bytes, 128u + 512);
  EXPECT_EQ(memory[4096 + 127], std::byte{5});
  EXPECT_EQ(memory[4096 + 128], std::byte{9}) << "the padding is not moved";
  EXPECT_EQ(memory[4096 + 1023], std::byte{5});
}

// Records each report of kept pages and how many pages of the arena were present at that time.
class PageWitness final : public PageListener {
 public:
  void pages_kept(std::span<const std::byte> memory, std::span<const PageRange> kept) override {
    text += text.empty() ? "" : "; ";
    for (const PageRange& range : kept)
      text += std::to_string(range.begin / 4096) + "-" + std::to_string(range.end / 4096) + " ";
    std::vector<unsigned char> pages(memory.size() / 4096 - 2);
    EXPECT_EQ(mincore(const_cast<std::byte*>(memory.data()), pages.size() * 4096, pages.data()), 0);
    text += "of " + std::to_string(std::ranges::count_if(pages, [](unsigned char page) { return page & 1; }));
  }
  std::string text;
};

// Listeners learn which pages stay before the others are returned, and learn of new pages once these are
// present. The staging's pages always stay.
TEST(DramAgent, SaysWhichPagesStay) {
  constexpr uint64_t kArena = 1024 * 4096;
  DramWorld world(kArena);
  std::ranges::fill(world.memory().first(kArena), std::byte{1});
  PageWitness witness;
  world.pools().listen(witness);
  EXPECT_EQ(witness.text, "1024-1026 of 1024");
  const auto after_resize = [&](const Unit& range) {
    witness.text.clear();
    EXPECT_EQ(world.ask(world.about(Op::resize, range)).status, DoneStatus::ok);
    return witness.text;
  };
  EXPECT_EQ(after_resize({0, kArena / 64}), "0-1024 1024-1026 of 1024; 0-1024 1024-1026 of 1024");
  // A part of a huge page may be given other pages.
  EXPECT_EQ(after_resize({64 + 1, 1000 * 64 + 1}), "1024-1026 of 1024; 1-512 512-1001 1024-1026 of 1000");
  EXPECT_EQ(after_resize({1, 2}), "1024-1026 of 1000; 0-1 1024-1026 of 1");
  witness.text.clear();
  world.end();
  EXPECT_EQ(witness.text, "of 1");
  world.pools().listen_no_more(witness);
}

TEST(DramAgent, ArenaStagingAndTensorsFollowEachOther) {
  const DramWorld world;
  EXPECT_EQ(world.memory().size(), 4096u + 8192u + 64u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(world.memory().data()) % 4096, 0u);
}

// Products that strategies request: columns of one matrix, and rows that do not fill a whole group.
TEST(DramAgent, ProductsOfPackedMatrices) {
  DramWorld world;
  constexpr uint32_t kIn = 3, kOut = 17;
  std::vector<float> plain(kOut * kIn);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i % 7) - 3;
  const uint64_t group = group_bytes(Encoding::f32, kIn);
  struct alignas(64) Groups {
    std::byte bytes[2 * 16 * kIn * sizeof(float)];
  } packed;
  ASSERT_EQ(sizeof packed, 2 * group);
  for (uint32_t first = 0; first < kOut; first += kGroupRows) {
    const uint32_t rows = std::min(kGroupRows, kOut - first);
    pack_row_group(Encoding::f32, rows, kIn, std::as_bytes(std::span(plain).subspan(first * kIn, rows * kIn)),
                   {packed.bytes + first / kGroupRows * group, group});
  }
  const float x[2][kIn] = {{1, 2, 3}, {-1, 0, 4}};
  float y[2][kOut];
  world.agent().linear({Encoding::f32, kOut, kIn, packed.bytes}, x[0], 2, y[0]);
  for (uint32_t row = 0; row < 2; ++row) {
    for (uint32_t i = 0; i < kOut; ++i) {
      const float* w = plain.data() + i * kIn;
      EXPECT_EQ(y[row][i], w[0] * x[row][0] + w[1] * x[row][1] + w[2] * x[row][2]);
    }
  }
  world.agent().linear({Encoding::f32, kOut, 0, nullptr}, x[0], 2, y[0]);
  EXPECT_EQ(y[1][16], 0);
}

}  // namespace
}  // namespace tierd
