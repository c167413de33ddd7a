// While no unit computes from the memories that another one fetches from, the wishes of its cache and of the
// balancer are fetched from there. The plugin that keeps heat receives the neurons that fire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr MemoryId kOfFirst = 1, kOfSecond = 2;

// Two units whose memories fetch from each other, and two sites. The second unit keeps and computes the first
// site, the first unit the second site.
class SpareTime : public testing::Test {
 protected:
  explicit SpareTime(
      WorldOptions options = {.neurons = {4, 4}, .slots = {4, 0}, .units = 2, .linked_units = true})
      : world(options) {
    world.script.admit = keep_what_fits();
    world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
      std::fill_n(unit, set->n, uint8_t{set->site == 0});
      return 0;
    };
  }
  void second_keeps() {
    ASSERT_TRUE(world.pass(0, 0).ok());
    ASSERT_EQ(of(kOfSecond).valid_count(0), 4u);
    ASSERT_EQ(of(kOfFirst).valid_count(0), 0u);
  }
  Residency& of(MemoryId memory) { return world.residencies[memory - 1u]; }

  ScriptedWorld world;
};

TEST_F(SpareTime, WhatTheCacheWantsComesFromAMemoryThatNobodyComputesFrom) {
  second_keeps();
  std::vector<SiteId> asked;
  world.script.meanwhile = [&](SiteId site) {
    asked.push_back(site);
    return std::vector<Wanted>{{0, Neurons{1, 3}}};
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_THAT(asked, ElementsAre(1)) << "the other memory's source computes";
  world.end_all();
  EXPECT_TRUE(of(kOfFirst).valid(0, 1) && of(kOfFirst).valid(0, 3));
  EXPECT_EQ(world.moved(), 2u);
  EXPECT_EQ(of(kOfSecond).valid_count(0), 4u) << "a copy";
  EXPECT_EQ(world.placement.home(0, 1), 0u);
  ASSERT_TRUE(world.pass(1, 1).ok());
  world.end_all();
  EXPECT_EQ(world.moved(), 2u) << "what is here is not wanted";
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

TEST_F(SpareTime, NothingIsWantedInPrompts) {
  second_keeps();
  world.script.meanwhile = [](SiteId) {
    ADD_FAILURE();
    return std::vector<Wanted>();
  };
  ASSERT_TRUE(world.pass(1, 0, {}, true).ok());
}

TEST_F(SpareTime, WhatNoNeighbourHoldsIsLeft) {
  world.script.meanwhile = [](SiteId) { return std::vector<Wanted>{{0, Neurons{2}}}; };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.end_all();
  EXPECT_EQ(world.moved(), 0u);
  EXPECT_EQ(world.reads(), "[4][5][6][7]") << "of the pass alone";
}

TEST_F(SpareTime, WhatTheCacheRefusesStays) {
  second_keeps();
  world.script.meanwhile = [](SiteId) { return std::vector<Wanted>{{0, std::nullopt}}; };
  std::vector<int> priorities;
  world.script.admit = [&](const tierd_set_view* missing, int priority, uint32_t, uint8_t* verdict,
                           tierd_victims_out*) {
    if (missing->edition == 0) priorities.push_back(priority);
    for (uint32_t i = 0; i < missing->n; ++i)
      verdict[i] = priority != TIERD_PRIORITY_MIGRATION ? TIERD_VERDICT_BYPASS
                   : i == 0                             ? TIERD_VERDICT_KEEP
                   : i == 1                             ? TIERD_VERDICT_REFUSE
                                                        : TIERD_VERDICT_BYPASS;
    return 0;
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.end_all();
  EXPECT_THAT(priorities, ElementsAre(TIERD_PRIORITY_MIGRATION));
  EXPECT_EQ(of(kOfFirst).valid_count(0), 1u) << "what would pass through is of no use";
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

TEST_F(SpareTime, HomesMoveWithWhatHasCome) {
  second_keeps();
  world.placement.place(0, {1, 1, 1, 1});
  world.script.rebalance = [](SiteId) {
    return std::vector<WantedThere>{{kOfFirst, {0, Neurons{0, 2}}}, {kOfSecond, {1, Neurons{0}}}};
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.end_all();
  EXPECT_THAT(world.placement.homes(0), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(world.moved(), 2u) << "the second one's source computes";
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

TEST_F(SpareTime, AFailedMoveMovesNoHome) {
  second_keeps();
  world.placement.place(0, {1, 1, 1, 1});
  world.script.rebalance = [](SiteId) { return std::vector<WantedThere>{{kOfFirst, {0, Neurons{0}}}}; };
  world.idle = [&] {
    if (!world.mover.open.empty()) return world.mover.finish(0, DoneStatus::io_error);
    if (!world.flash.open.empty()) world.flash.finish();
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.end_all();
  EXPECT_THAT(world.placement.homes(0), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(of(kOfFirst).valid_count(0), 0u);
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

TEST_F(SpareTime, NonsenseIsAFault) {
  second_keeps();
  const auto refused = [&](WantedThere wanted) {
    world.script.rebalance = [wanted](SiteId) { return std::vector<WantedThere>{wanted}; };
    const Status status = world.pass(1, 0);
    world.heal();
    return status.ok() ? "accepted" : status.error().line();
  };
  EXPECT_THAT(refused({kStore, {0, Neurons{0}}}),
              HasSubstr("a wish names a memory from which no unit computes"));
  EXPECT_THAT(refused({7, {0, Neurons{0}}}), HasSubstr("a wish names a memory from which no unit computes"));
  EXPECT_THAT(refused({kOfFirst, {9, Neurons{0}}}), HasSubstr("edition 9, expected a number below 2"));
  EXPECT_THAT(refused({kOfFirst, {0, Neurons{4}}}), HasSubstr("neuron 4"));
  world.script.meanwhile = [](SiteId) { return std::vector<Wanted>{{9, Neurons{0}}}; };
  EXPECT_THAT(world.pass(1, 0).error().line(), HasSubstr("idle: edition 9, expected a number below 2"));
}

// One message at a time, and none after the pass.
class ManyInSpareTime : public SpareTime {
 protected:
  ManyInSpareTime()
      : SpareTime({.neurons = {256, 4},
                   .slots = {256, 0},
                   .neurons_per_block = 256,
                   .units = 2,
                   .linked_units = true}) {}
};

TEST_F(ManyInSpareTime, ComeAMessageAtATimeUntilThePassIsOver) {
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.script.meanwhile = [](SiteId) { return std::vector<Wanted>{{0, std::nullopt}}; };
  world.idle = [&] {
    if (!world.flash.open.empty()) return world.flash.finish();
    EXPECT_LE(world.mover.open.size(), 1u);
    if (!world.mover.open.empty()) world.mover.finish();
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.end_all();
  EXPECT_GT(world.moved(), 0u);
  EXPECT_LT(world.moved(), 256u) << "the pass did not wait for them";
  EXPECT_EQ(of(kOfFirst).valid_count(0), world.moved());
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

// ---- Heat

TEST(Firing, IsToldWithWhatWasComputed) {
  ScriptedWorld world({.neurons = {6}, .slots = {0}, .neurons_per_block = kRun, .rows = 2, .bundles = true});
  world.script.heat = [](SiteId, uint8_t* heat) {
    heat[0] = 3;
    return 0;
  };
  std::vector<std::string> told;
  world.script.fired = [&](const tierd_fired_view* view) {
    std::string line = view->known == TIERD_KNOWN_ALL ? "all:" : "some:";
    for (uint32_t i = 0; i < view->n; ++i)
      line += " " + std::to_string(view->idx[i]) + "x" + std::to_string(view->count[i]);
    told.push_back(line + (view->prompt != 0 ? " prompt" : ""));
  };
  world.heal();
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(0, 1, {}, true).ok());
  world.script.predict = [](SiteId, tierd_set_out* out) {
    out->idx[0] = 1, out->idx[1] = 2;
    out->n = 2;
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 2).ok());
  for (const Computed& computed : world.compute.log) {
    EXPECT_EQ(computed.told, !computed.neurons.empty());
    EXPECT_FALSE(computed.measured);
  }
  std::string all = "all:", some = "some:";
  for (uint32_t i = 0; i < 6; ++i) {
    uint32_t rows = 0;
    for (uint32_t r = 0; r < 2; ++r) rows += contribution_value(r, i) != 0 ? 1 : 0;
    const std::string text = " " + std::to_string(i) + "x" + std::to_string(rows);
    if (rows != 0) all += text;
    if (rows != 0 && (i == 1 || i == 2)) some += text;
  }
  EXPECT_THAT(told, ElementsAre(all, all + " prompt", some));
  EXPECT_THAT(world.strategies.heat_of[0], ElementsAre(3, 0, 0, 0, 0, 0));
}

TEST(Firing, MoreHeatThanThereIsIsAFault) {
  ScriptedWorld world({.neurons = {2}, .slots = {0}, .neurons_per_block = kRun, .bundles = true});
  world.script.heat = [](SiteId, uint8_t* heat) {
    heat[1] = TIERD_HOTTEST + 1;
    return 0;
  };
  world.heal();
  EXPECT_THAT(world.pass(0, 0).error().line(),
              HasSubstr("heat 'script': heat: value 16, expected at most 15"));
}

TEST(Firing, NobodyIsToldWhereNobodyAsks) {
  ScriptedWorld world({.neurons = {2}, .slots = {0}, .neurons_per_block = kRun, .bundles = true});
  ASSERT_TRUE(world.pass(0, 0).ok());
  for (const Computed& computed : world.compute.log) EXPECT_FALSE(computed.told);
  EXPECT_THAT(world.strategies.heat_of[0], IsEmpty());
}

}  // namespace
}  // namespace tierd
