// Editions that are made of others while they are fetched: a memory holds the one where another holds the
// other, and the link between them recodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;

constexpr EditionId kStored = 0, kMade = 1;

bool recodes(const Read& read) {
  return (read.message.flags & kRecode) != 0;
}

TEST(Recoding, ALinkMakesWhatTheMemoryAboveHolds) {
  ScriptedWorld world({.neurons = {6},
                       .slots = {0, 3},
                       .neurons_per_block = 4,
                       .made = WorldOptions::Made::above,
                       .below = {{6, 0}}});
  world.script.admit = keep_what_fits();
  world.script_below.admit = keep_what_fits();
  for (const uint32_t step : {0u, 1u}) {
    ASSERT_TRUE(world.pass(0, step).ok());
    world.expect_whole(0, step, {0, 1, 2, 3, 4, 5});
  }
  EXPECT_EQ(world.residencies.front().valid_count(kStored), 6u);
  EXPECT_EQ(world.residencies.front().valid_count(kMade), 0u);
  EXPECT_EQ(world.residency.valid_count(kStored), 0u);
  EXPECT_EQ(world.residency.valid_count(kMade), 3u);
  for (const Read& read : world.flash.started) EXPECT_FALSE(recodes(read)) << "it lands as it is stored";
  Neurons moved;
  for (const Read& move : world.mover.started) {
    EXPECT_TRUE(recodes(move));
    EXPECT_EQ(move.message.edition, kMade);
    EXPECT_EQ(move.message.unit_bytes, kSlot) << "what crosses the link is stored neurons";
    EXPECT_EQ(move.neurons.size(), move.units.size());
    moved.insert(moved.end(), move.neurons.begin(), move.neurons.end());
  }
  EXPECT_THAT(moved, testing::SizeIs(9)) << "three of them stay";
  for (const Computed& computed : world.compute.log) {
    if (computed.neurons.empty()) continue;
    EXPECT_EQ(computed.edition, kMade);
  }
  world.expect_nothing_lost();
}

TEST(Recoding, EachCacheHearsOfWhatItsMemoryHolds) {
  ScriptedWorld world({.neurons = {3},
                       .slots = {0, 3},
                       .neurons_per_block = 6,
                       .made = WorldOptions::Made::above,
                       .below = {{3, 0}}});
  world.script.admit = keep_what_fits();
  world.script_below.admit = keep_what_fits();
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(world.script.calls, ElementsAre("landed 1:0,1,2", "touch 1:0,1,2"));
  EXPECT_THAT(world.script_below.calls, ElementsAre("landed 0:0,1,2", "touch 0:0,1,2"));
  world.expect_nothing_lost();
}

TEST(Recoding, AReadMakesThemWhereTheLowestMemoryHoldsThem) {
  ScriptedWorld world({.neurons = {6},
                       .slots = {0, 2},
                       .neurons_per_block = 4,
                       .made = WorldOptions::Made::everywhere,
                       .below = {{0, 4}}});
  world.script.admit = keep_what_fits();
  world.script_below.admit = keep_what_fits();
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5});
  EXPECT_FALSE(world.flash.started.empty());
  for (const Read& read : world.flash.started) {
    EXPECT_TRUE(recodes(read));
    EXPECT_EQ(read.message.edition, kMade);
    EXPECT_THAT(read.extents, Each(testing::Lt(6u))) << "the extents are those of the stored edition";
  }
  for (const Read& move : world.mover.started) {
    EXPECT_FALSE(recodes(move)) << "nothing is left to be made";
    EXPECT_EQ(move.message.unit_bytes, 2 * kSlot);
  }
  EXPECT_EQ(world.residencies.front().valid_count(kMade), 4u);
  world.expect_nothing_lost();
}

// What a wish fetches ahead is of the edition that the memory holds as well.
TEST(Recoding, LookAheadFetchesWhatTheMemoryHolds) {
  ScriptedWorld world({.neurons = {4, 4},
                       .slots = {0, 0, 4, 4},
                       .neurons_per_block = 8,
                       .made = WorldOptions::Made::above,
                       .below = {{4, 4, 0, 0}}});
  world.script.admit = keep_what_fits();
  world.script_below.admit = keep_what_fits();
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>();
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.expect_whole(1, 0, {0, 1, 2, 3});
  EXPECT_THAT(world.script.calls, Contains("landed 3:0,1,2,3"));
  EXPECT_EQ(world.scheduler->counters().misses, 8u) << "each was fetched once";
  EXPECT_EQ(world.flash.started.size(), 2u);
  for (const Read& move : world.mover.started) {
    EXPECT_TRUE(recodes(move));
    EXPECT_EQ(move.message.edition, 2 + move.message.site);
  }
  world.expect_nothing_lost();
}

// Summed sites, with messages in a drawn order, through little staging.
TEST(Recoding, RunsAreMadeInAnyOrderOfMessages) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    ScriptedWorld world({.neurons = {3 * kRun, 2 * kRun},
                         .slots = {0, 0, 40, 0},
                         .blocks = 2,
                         .neurons_per_block = 2 * kRun,
                         .seed = seed,
                         .bundles = true,
                         .made = WorldOptions::Made::above,
                         .below = {{50, 20, 0, 0}},
                         .blocks_below = 2});
    world.script.admit = keep_what_fits();
    world.script_below.admit = keep_what_fits();
    for (const uint32_t step : {0u, 1u}) {
      for (const SiteId site : {0u, 1u}) {
        ASSERT_TRUE(world.pass(site, step).ok());
        Neurons all(world.sites[site].n);
        std::iota(all.begin(), all.end(), 0u);
        world.expect_whole(site, step, all);
      }
      ASSERT_TRUE(world.end_step(step).ok());
    }
    ASSERT_TRUE(world.drain().ok());
    world.expect_nothing_lost();
  }
}

}  // namespace
}  // namespace tierd
