// Editions made of others while they are fetched: two memories hold different editions, and the link between
// them recodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

void keep_in_both(ScriptedWorld& world) {
  world.script.admit = keep_what_fits();
  world.script_below.admit = keep_what_fits();
}

TEST(Recoding, ALinkMakesWhatTheMemoryAboveHolds) {
  ScriptedWorld world({.neurons = {6},
                       .slots = {0, 3},
                       .neurons_per_block = 4,
                       .made = WorldOptions::Made::above,
                       .below = {{6, 0}}});
  keep_in_both(world);
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
    EXPECT_THAT(move.lengths, Each(kSlot - 64)) << "to the end of their last place";
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
  keep_in_both(world);
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
  keep_in_both(world);
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

// A prefetch also fetches the edition that the memory holds.
TEST(Recoding, LookAheadFetchesWhatTheMemoryHolds) {
  ScriptedWorld world({.neurons = {4, 4},
                       .slots = {0, 0, 4, 4},
                       .neurons_per_block = 8,
                       .made = WorldOptions::Made::above,
                       .below = {{4, 4, 0, 0}}});
  keep_in_both(world);
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

// Summed sites, with messages in a drawn order, through few staging blocks.
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
    keep_in_both(world);
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

// ---- A site's editions are made of one that is stored.

TEST(Recoding, SeveralEditionsComeFromTheOneThatIsStored) {
  ScriptedWorld world({.neurons = {6},
                       .slots = {1, 1, 1},
                       .neurons_per_block = 6,
                       .editions = 3,
                       .made = WorldOptions::Made::beside,
                       .below = {{4, 0, 0}}});
  keep_in_both(world);
  world.script.choose = by_number;
  for (const uint32_t step : {0u, 1u}) {
    ASSERT_TRUE(world.pass(0, step).ok());
    world.expect_whole(0, step, {0, 1, 2, 3, 4, 5});
  }
  EXPECT_EQ(world.residencies.front().valid_count(0), 4u);
  for (const EditionId e : {0u, 1u, 2u}) EXPECT_EQ(world.residency.valid_count(e), 1u);
  for (const Read& read : world.flash.started) {
    EXPECT_EQ(read.message.edition, 0u);
    EXPECT_FALSE(recodes(read));
    EXPECT_THAT(read.extents, Each(testing::Lt(6u)));
  }
  for (const Read& move : world.mover.started) {
    EXPECT_EQ(recodes(move), move.message.edition != 0) << "the stored one comes as it is";
    EXPECT_EQ(move.message.unit_bytes, kSlot);
    for (const uint32_t neuron : move.neurons) EXPECT_EQ(neuron % 3, move.message.edition);
  }
  for (const Computed& computed : world.compute.log) {
    for (const uint32_t neuron : computed.neurons) EXPECT_EQ(neuron % 3, computed.edition);
  }
  world.expect_nothing_lost();
}

// A neuron that changes its edition stays in the memory below.
TEST(Recoding, ANeuronOfAnotherRankIsMadeAnewOfWhatIsBelow) {
  ScriptedWorld world({.neurons = {3},
                       .slots = {3, 3, 3},
                       .neurons_per_block = 3,
                       .editions = 3,
                       .made = WorldOptions::Made::beside,
                       .below = {{3, 0, 0}}});
  keep_in_both(world);
  for (const uint8_t level : {uint8_t{2}, uint8_t{1}, uint8_t{0}}) {
    world.script.choose = all_in(level);
    ASSERT_TRUE(world.pass(0, level).ok());
    world.expect_whole(0, level, {0, 1, 2});
  }
  EXPECT_EQ(world.flash.started.size(), 1u);
  EXPECT_EQ(world.mover.started.size(), 3u);
  world.expect_nothing_lost();
}

// The memories below get one wish for all editions, from the predictor for the units or from a cache for its
// own memory.
TEST(Recoding, AWishForSeveralEditionsIsOneBelow) {
  for (const bool of_cache : {false, true}) {
    SCOPED_TRACE(of_cache ? "cache" : "predictor");
    ScriptedWorld world({.neurons = {1, 6},
                         .slots = {0, 0, 0, 2, 2, 2},
                         .blocks = 4,
                         .neurons_per_block = 8,
                         .editions = 3,
                         .made = WorldOptions::Made::beside,
                         .below = {{0, 0, 0, 0, 0, 0}}});
    world.script.admit = keep_what_fits();
    world.script.choose = by_number;
    const auto ahead = [](SiteId site) {
      return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>();
    };
    (of_cache ? world.script_below.ahead : world.script.look_ahead) = ahead;
    ASSERT_TRUE(world.pass(0, 0).ok());
    world.settle();
    if (of_cache) {
      EXPECT_EQ(world.flash.started.back().extents, (Neurons{1, 2, 3, 4, 5, 6}));
    }
    ASSERT_TRUE(world.pass(1, 0).ok());
    world.expect_whole(1, 0, {0, 1, 2, 3, 4, 5});
    Neurons read;
    for (const Read& of : world.flash.started) read.insert(read.end(), of.extents.begin(), of.extents.end());
    std::ranges::sort(read);
    EXPECT_EQ(read, (Neurons{0, 1, 2, 3, 4, 5, 6})) << "each is fetched once";
    ASSERT_TRUE(world.end_step(0).ok());
    world.expect_nothing_lost();
    EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  }
}

// Messages in a drawn order, few staging blocks, and wishes for editions that are then not chosen.
TEST(Recoding, SeveralEditionsComeInAnyOrderOfMessages) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    ScriptedWorld world({.neurons = {3 * kRun, 2 * kRun},
                         .slots = {40, 20, 10, 0, 10, 30},
                         .blocks = 4,
                         .neurons_per_block = 2 * kRun,
                         .seed = seed,
                         .bundles = true,
                         .editions = 3,
                         .made = WorldOptions::Made::beside,
                         .below = {{50, 0, 0, 20, 0, 0}},
                         .blocks_below = 2});
    keep_in_both(world);
    world.script.look_ahead = [](SiteId site) { return std::vector<Ahead>{{1 - site, 1}}; };
    uint32_t calls = 0;
    world.script.choose = [&](const tierd_set_view* set, uint8_t* level) {
      const uint32_t shift = calls++ % 5;
      for (uint32_t i = 0; i < set->n; ++i)
        level[i] = static_cast<uint8_t>(((set->idx == nullptr ? i : set->idx[i]) + shift) % 3);
      return 0;
    };
    for (const uint32_t step : {0u, 1u, 2u}) {
      for (const SiteId site : {0u, 1u}) {
        const Status passed = world.pass(site, step);
        ASSERT_TRUE(passed.ok()) << passed.error().line();
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
