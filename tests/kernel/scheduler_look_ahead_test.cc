// The scheduler prefetches what a predictor wishes for. The tests cover wishes made early, wishes that wait
// for memory, wrong wishes and wishes given up.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/kernel/pass/scheduler.h"
#include "tests/kernel/scripted_answers.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

TEST(Scheduler, LookAheadWrapsIntoTheNextStep) {
  ScriptedWorld world({.blocks = 16});
  world.script.look_ahead = [](SiteId site) {
    return site == 2 ? std::vector<Ahead>{{0, 1}, {1, 2, Neurons{1}}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(2, 5).ok());
  ASSERT_TRUE(world.end_step(5).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[8][9][10][11][0][1][2][3][5]");
  for (const Read& read : world.flash.open) {
    EXPECT_EQ(read.message.priority, Priority::prefetch);
    EXPECT_EQ(read.message.expires_step, 6u);
  }
  world.flash.finish(1);  // neuron 1 arrives before its site begins
  world.settle();
  ASSERT_TRUE(world.pass(0, 6).ok());
  EXPECT_EQ(world.computed(0, 6), "B1 0 2 3A");
  EXPECT_EQ(world.flash.raises.size(), 3u);
  EXPECT_EQ(world.scheduler->counters().staged, 4u);
  ASSERT_TRUE(world.pass(1, 6).ok());
  world.expect_whole(1, 6, {0, 1, 2, 3});
  EXPECT_EQ(world.scheduler->counters().staged, 5u);
  EXPECT_EQ(world.scheduler->counters().misses, 4u + 3u);
  EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  world.expect_nothing_lost();
}

TEST(Scheduler, TheSameWishIsTakenOnce) {
  ScriptedWorld world({.blocks = 16});
  world.script.look_ahead = [](SiteId site) { return std::vector<Ahead>{{2, 2 - site}}; };
  world.script.predict = predicts({{0, {}}, {1, {}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[8][9][10][11]");
  world.expect_nothing_lost();
}

// A wish of the cache that equals one of the predictor, or the other way round, changes nothing.
TEST(Scheduler, TheSameWishOfACacheIsTakenOnce) {
  for (const uint32_t units : {1u, 2u}) {
    ScriptedWorld world({.blocks = 16, .units = units});
    world.script.look_ahead = [](SiteId site) { return std::vector<Ahead>{{2, 2 - site}}; };
    world.script.ahead = [](SiteId) { return std::vector<Ahead>{{2, 2}}; };
    world.script.predict = predicts({{0, {}}, {1, {}}});
    ASSERT_TRUE(world.pass(0, 0).ok());
    world.script.ahead = [](SiteId) { return std::vector<Ahead>{{2, 1}, {0, 2}}; };
    ASSERT_TRUE(world.pass(1, 0).ok());
    world.script.ahead = nullptr;
    world.script.look_ahead = [](SiteId) { return std::vector<Ahead>{{0, 1}}; };
    ASSERT_TRUE(world.pass(2, 0).ok());
    world.settle();
    EXPECT_EQ(world.flash.started.size(), 4u + units * 4u) << "each cache has wished for all of site 0";
    EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  }
}

TEST(Scheduler, NothingIsReadAheadWhenThatIsOff) {
  ScriptedWorld world({.prefetch = false});
  world.script.look_ahead = [](SiteId) {
    ADD_FAILURE() << "nobody asked";
    return std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
}

TEST(Scheduler, WishesThatWaitedBecomeDemand) {
  // 3 blocks, one of them reserved for demands: two of the four wished neurons are prefetched
  ScriptedWorld world({.blocks = 3});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{0, {}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[4][5]");
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.reads(), "[4][5][6][7]");
  world.expect_whole(1, 0, {0, 1, 2, 3});
  EXPECT_EQ(world.scheduler->counters().staged, 2u);
  EXPECT_EQ(world.scheduler->counters().misses, 2u);
  world.expect_nothing_lost();
}

// The pass begins while some of its neurons are moved. The neurons in the memory below stay there for it.
TEST(Scheduler, ADemandTakesOverWhatHasComeBelow) {
  ScriptedWorld world(
      {.neurons = {1, 1, 8}, .slots = {0, 0, 0}, .blocks = 3, .neurons_per_block = 2, .below = {{0, 0, 0}}});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{2, 2}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  while (!world.flash.open.empty()) world.flash.finish();
  world.settle();
  const auto by_default = world.idle;
  world.idle = [&] {
    if (!world.flash.open.empty()) return world.flash.finish();
    const auto own =
        std::ranges::find(world.mover.open, 1u, [](const Read& move) { return move.message.site; });
    world.mover.finish(static_cast<size_t>(own - world.mover.open.begin()));
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  ASSERT_FALSE(world.mover.open.empty());
  ASSERT_LT(world.mover.started.size(), 6u);
  world.idle = by_default;
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(world.reads(), "[0][2,3][4,5][6,7][8,9][1]");
  EXPECT_EQ(world.mover.started.size(), 6u);
  EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  world.expect_nothing_lost();
}

TEST(Scheduler, AWishThatWasWrongIsForgotten) {
  ScriptedWorld world({.slots = {0, 4, 0}, .messages = 3});
  world.script.admit = verdicts(
      {{0, TIERD_VERDICT_KEEP}, {1, TIERD_VERDICT_KEEP}, {2, TIERD_VERDICT_KEEP}, {3, TIERD_VERDICT_KEEP}});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{0, {}}, {1, {3}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[4][5][6]");  // no more messages are free
  EXPECT_TRUE(world.residency.leased(1, 3));
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.expect_whole(1, 0, {3});
  world.expect_nothing_lost();
  EXPECT_EQ(world.residency.valid_count(1), 4u);  // reads in flight are kept
}

// A demand uses the other blocks, so prefetched neurons are not read twice.
TEST(Scheduler, ADemandLeavesTheLookAheadItsBlocks) {
  for (const bool landed : {true, false}) {
    ScriptedWorld world({.neurons = {2, 4, 2}, .blocks = 3});
    world.script.look_ahead = [](SiteId site) {
      return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0}}, {2, 2, Neurons{0}}} : std::vector<Ahead>{};
    };
    world.script.predict = predicts({{0, {}}, {1, {0, 1, 2}}});
    ASSERT_TRUE(world.pass(0, 0).ok());
    world.settle();
    EXPECT_EQ(world.reads(), "[2][6]");
    if (landed) {
      world.flash.finish(0);
      world.flash.finish(0);
      world.settle();
    }
    ASSERT_TRUE(world.pass(1, 0).ok());
    world.expect_whole(1, 0, {0, 1, 2});
    EXPECT_EQ(world.reads(), "[2][6][3][4]");
    EXPECT_EQ(world.scheduler->counters().wasted, 0u);
    EXPECT_TRUE(world.flash.cancels.empty());
    ASSERT_TRUE(world.pass(2, 0).ok());
    world.expect_whole(2, 0, {0, 1});
    EXPECT_EQ(world.reads(), "[2][6][3][4][7]");
    world.expect_nothing_lost();
  }
}

TEST(Scheduler, LookAheadDoesNotTakeWhatADemandWaitsFor) {
  // Site 1 needs 6 neurons through 2 blocks; a wish for site 2 waits. The demand gets blocks first.
  ScriptedWorld world({.neurons = {1, 6, 2}, .slots = {0, 0, 0}, .blocks = 2, .prefetch = true});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{2, 2}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{0, {}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[7]");
  world.idle = [&] {
    while (!world.flash.open.empty()) world.flash.finish();
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.reads().substr(0, 21), "[7][1][2][3][4][5][6]");
  world.expect_nothing_lost();
}

TEST(Scheduler, AWrongLookAheadIsGivenUp) {
  ScriptedWorld world({.neurons = {2, 4, 2}, .blocks = 8});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0, 1, 2}}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{0, {}}, {1, {0, 3}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  world.flash.finish(1);  // neuron 1 has landed, 2 is in flight
  world.settle();
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.flash.cancels.size(), 1u);
  world.expect_whole(1, 0, {0, 3});
  world.expect_nothing_lost();
  EXPECT_EQ(world.scheduler->counters().wasted, 2u);
}

TEST(Scheduler, OfAReadThatBringsTooMuchOnlyWhatIsWantedIsComputed) {
  ScriptedWorld world({.neurons = {2, 4, 2}, .neurons_per_block = 4});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{0, {}}, {1, {1, 2}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.reads(), "[2,3,4,5]");
  EXPECT_EQ(world.computed(1, 0), "B 1,2A");
  world.expect_nothing_lost();
}

TEST(Scheduler, WhatNobodyUsedIsGivenUpWithItsStep) {
  ScriptedWorld world({.blocks = 8});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0, 1}}, {0, 3, Neurons{2}}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{0, {}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_TRUE(world.end_step(0).ok());
  world.settle();
  EXPECT_EQ(world.flash.cancels.size(), 2u);  // not the wish for step 1
  while (!world.flash.open.empty()) world.flash.finish();
  world.settle();
  EXPECT_EQ(world.scheduler->counters().wasted, 2u);
  world.expect_nothing_lost();
}

// A pass over a later site ends wishes for a skipped site, such as an expert that is not chosen.
TEST(Scheduler, WhatASiteWasForThatIsPassedOverIsGivenUp) {
  ScriptedWorld world({.blocks = 4});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0, 1, 2, 3}}, {0, 3, Neurons{2}}}
                     : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{0, {}}, {2, {1}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[4][5][6]") << "a block is kept free of look-ahead";
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.settle();
  EXPECT_EQ(world.flash.cancels.size(), 3u);
  EXPECT_EQ(world.scheduler->counters().wasted, 3u);
  EXPECT_EQ(world.reads(), "[4][5][6][9][2]") << "neuron 3 is not asked for any more";
  world.expect_nothing_lost();
}

}  // namespace
}  // namespace tierd
