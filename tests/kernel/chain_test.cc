// A memory over another one fetches missing neurons from the nearest memory that holds them. Neurons that no
// memory holds are fetched into the memory below first, whose cache sees only these misses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/base/random.h"
#include "tests/kernel/scripted_answers.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Records the neurons of each call of a cache's `admit`.
Admit noting(std::vector<std::string>& asked, Admit admit) {
  return [&asked, admit = std::move(admit)](const tierd_set_view* missing, int priority, uint32_t free_slots,
                                            uint8_t* verdict, tierd_victims_out* victims) {
    std::string line;
    for (uint32_t i = 0; i < missing->n; ++i) line += (i == 0 ? "" : ",") + std::to_string(missing->idx[i]);
    asked.push_back(line);
    return admit(missing, priority, free_slots, verdict, victims);
  };
}

int everything_passes(const tierd_set_view* missing, int, uint32_t, uint8_t* verdict, tierd_victims_out*) {
  std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_BYPASS});
  return 0;
}

// Makes these neurons active at every site from now on.
void use_everywhere(ScriptedWorld& world, Neurons neurons) {
  world.script.predict = [neurons = std::move(neurons)](SiteId, tierd_set_out* out) {
    return answer_neurons(neurons, out);
  };
}

Neurons first(uint32_t n) {
  Neurons neurons(n);
  std::iota(neurons.begin(), neurons.end(), 0u);
  return neurons;
}

TEST(Chain, WhatIsMissingComesByWayOfTheMemoryBelow) {
  ScriptedWorld world({.neurons = {6}, .slots = {0}, .neurons_per_block = 2, .below = {{6}}});
  world.script_below.admit = keep_what_fits();
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(world.reads(), "[0,1][2,3][4,5]");
  EXPECT_EQ(world.moved(), 6u);
  EXPECT_EQ(world.residencies.front().valid_count(0), 6u);

  ASSERT_TRUE(world.pass(0, 1).ok());
  world.expect_whole(0, 1, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(world.flash.started.size(), 3u) << "nothing is read again";
  for (const Read& move : world.mover.started) {
    EXPECT_EQ(move.message.unit_bytes, kSlot);
    EXPECT_THAT(move.lengths, testing::Each(kSlot - 64)) << "4000 bytes, to the next multiple of 64";
    EXPECT_EQ(move.lengths.size(), move.units.size());
  }
  // The scripted agents complete whole slots.
  const LinkCounters& link = world.scheduler->link_counters(1);
  EXPECT_EQ(link.payload_bytes, link.neurons * (kSlot - 96));
  EXPECT_EQ(link.padding_bytes(), link.neurons * 96);
  EXPECT_EQ(world.moved(), 12u);
  const SchedulerCounters& counters = world.scheduler->counters();
  EXPECT_EQ(counters.misses, 12u) << "of the memory that is computed from";
  EXPECT_EQ(counters.hits, 0u);
  EXPECT_EQ(counters.read_bytes, 6u * kSlot) << "from the store";
  world.expect_nothing_lost();
}

TEST(Chain, ACacheSeesTheMissesOfTheOneAbove) {
  ScriptedWorld world({.neurons = {6}, .slots = {3}, .neurons_per_block = 6, .below = {{6}}});
  std::vector<std::string> above, below;
  world.script.admit = noting(above, keep_what_fits());
  world.script_below.admit = noting(below, keep_what_fits());
  use_everywhere(world, {0, 1, 2});
  ASSERT_TRUE(world.pass(0, 0).ok());
  use_everywhere(world, {1, 2, 4});
  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_THAT(above, ElementsAre("0,1,2", "4"));
  EXPECT_THAT(below, ElementsAre("0,1,2", "4"));
  EXPECT_THAT(world.script_below.calls,
              ElementsAre("landed 0:0,1,2", "touch 0:0,1,2", "landed 0:4", "touch 0:4"));
  EXPECT_THAT(world.script.calls, Contains("touch 0:1,2,4"));
  world.expect_nothing_lost();
}

TEST(Chain, WhatPassesThroughBelowGivesItsBlockBack) {
  ScriptedWorld world({.neurons = {8}, .slots = {0}, .blocks = 2, .below = {{0}}, .blocks_below = 2});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(world.flash.started.size(), 8u);
  EXPECT_EQ(world.flash.most_open, 2u);
  EXPECT_EQ(world.moved(), 8u);
  world.expect_nothing_lost();
}

// Runs of a summed site arrive in order, through one block in each memory.
TEST(Chain, RunsComeThroughOneBlockInEach) {
  ScriptedWorld world({.neurons = {4 * kRun},
                       .slots = {0},
                       .blocks = 1,
                       .neurons_per_block = kRun,
                       .bundles = true,
                       .below = {{0}},
                       .blocks_below = 1});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, first(4 * kRun));
  EXPECT_EQ(world.flash.most_open, 1u);
  EXPECT_EQ(world.mover.most_open, 1u);
  world.expect_nothing_lost();
}

TEST(Chain, TheStoreIsReadWhereNobodyNearerHoldsIt) {
  ScriptedWorld world({.neurons = {6}, .slots = {0}, .neurons_per_block = 6, .below = {{6}}, .direct = true});
  std::vector<std::string> below;
  world.script_below.admit = noting(below, keep_what_fits());
  world.script_below.fill = [] { return std::vector<Wanted>{{0, Neurons{1, 4}}}; };
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  EXPECT_EQ(world.reads(), "[1,4]");
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(world.moved(), 2u);
  EXPECT_EQ(world.reads().substr(5), "[0,2,3,5]");
  EXPECT_TRUE(below.empty());
  EXPECT_THAT(world.script_below.calls, Contains("touch 0:1,4"));
  world.expect_nothing_lost();
}

// One run arrives partly from the store and partly from the memory below, in one block.
TEST(Chain, ARunOfTwoSourcesFillsOneBlock) {
  ScriptedWorld world({.neurons = {2 * kRun},
                       .slots = {0},
                       .blocks = 1,
                       .neurons_per_block = kRun,
                       .bundles = true,
                       .below = {{kRun}},
                       .direct = true});
  Neurons held;
  for (uint32_t i = 0; i < 2 * kRun; i += 3) held.push_back(i);
  world.script_below.fill = [&] { return std::vector<Wanted>{{0, held}}; };
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.moved(), held.size());
  world.expect_whole(0, 0, first(2 * kRun));
  world.expect_nothing_lost();
}

// A cache below may prefetch for later passes than the predictor does. Both prefetches are kept.
TEST(Chain, ACacheBelowFetchesAheadIntoItsOwnMemory) {
  ScriptedWorld world(
      {.neurons = {1, 1, 4}, .slots = {0, 0, 0}, .neurons_per_block = 4, .below = {{0, 0, 4}}});
  world.script_below.admit = keep_what_fits();
  world.script_below.ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{2, 2, Neurons{1, 3}}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  world.end_all();
  EXPECT_TRUE(world.residencies.front().valid(2, 1) && world.residencies.front().valid(2, 3));
  EXPECT_EQ(world.residencies.front().valid_count(2), 2u);
  EXPECT_EQ(world.moved(), 1u) << "the first site's neuron alone went further";
  ASSERT_TRUE(world.pass(1, 0).ok());
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {0, 1, 2, 3});
  EXPECT_EQ(world.scheduler->counters(1).passed_on.hits, 2u);
  world.expect_nothing_lost();
}

TEST(Chain, APredictorMayNameTheMemory) {
  ScriptedWorld world(
      {.neurons = {1, 1, 4}, .slots = {0, 0, 2}, .neurons_per_block = 4, .below = {{0, 0, 4}}});
  world.script.admit = world.script_below.admit = keep_what_fits();
  world.script.look_ahead = [](SiteId site) {
    if (site != 0) return std::vector<Ahead>{};
    return std::vector<Ahead>{{2, 2, Neurons{0, 1, 2}, 1}, {2, 2, Neurons{1}}};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  world.end_all();
  ASSERT_TRUE(world.pass(1, 0).ok());  // prefetches move on from the memory below during a pass
  world.settle();
  world.end_all();
  EXPECT_EQ(world.residencies.front().valid_count(2), 3u);
  EXPECT_EQ(world.residency.valid_count(2), 1u);
  EXPECT_TRUE(world.residency.valid(2, 1));
  world.expect_nothing_lost();
}

TEST(Chain, WhatTheCacheBelowRefusesIsNotFetchedAheadIntoIt) {
  ScriptedWorld world(
      {.neurons = {1, 1, 4}, .slots = {0, 0, 0}, .neurons_per_block = 4, .below = {{0, 0, 1}}});
  world.script_below.admit = [](const tierd_set_view* missing, int priority, uint32_t free_slots,
                                uint8_t* verdict, tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i) {
      const bool ahead = priority == TIERD_PRIORITY_PREFETCH;
      verdict[i] = static_cast<uint8_t>(i < free_slots ? TIERD_VERDICT_KEEP
                                        : ahead        ? TIERD_VERDICT_REFUSE
                                                       : TIERD_VERDICT_BYPASS);
    }
    return 0;
  };
  world.script_below.ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{2, 2}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  world.end_all();
  EXPECT_EQ(world.reads(), "[0][2]");
  EXPECT_EQ(world.residencies.front().valid_count(2), 1u);
  world.expect_nothing_lost();
}

TEST(Chain, WhatIsReadAheadIsMovedAhead) {
  ScriptedWorld world(
      {.neurons = {1, 1, 4}, .slots = {0, 0, 0}, .neurons_per_block = 4, .below = {{0, 0, 4}}});
  world.script_below.admit = keep_what_fits();
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{2, 2}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.moved(), 1u + 1u + 4u) << "before the pass that uses them";
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {0, 1, 2, 3});
  EXPECT_EQ(world.scheduler->counters().staged, 4u);
  EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  world.expect_nothing_lost();
}

// The pass begins while its neurons are read below: the read is raised, and nothing is read twice.
TEST(Chain, ADemandTakesOverWhatIsReadBelow) {
  ScriptedWorld world({.neurons = {1, 4}, .slots = {0, 0}, .neurons_per_block = 4, .below = {{0, 0}}});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0, 1, 2}}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_EQ(world.flash.open.size(), 1u);
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.expect_whole(1, 0, {0, 1, 2, 3});
  EXPECT_EQ(world.reads(), "[0][1,2,3][4]");
  EXPECT_THAT(world.flash.raises, ElementsAre(world.flash.started[1].message.id));
  EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  world.expect_nothing_lost();
}

TEST(Chain, WhatIsWishedForInVainIsGivenUpInBoth) {
  ScriptedWorld world({.neurons = {1, 4}, .slots = {0, 2}, .neurons_per_block = 4, .below = {{0, 2}}});
  world.script.admit = world.script_below.admit = keep_what_fits();
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0, 1, 2, 3}}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_TRUE(world.end_step(0).ok());
  world.expect_nothing_lost();
  ASSERT_TRUE(world.pass(0, 1).ok());
  world.script.look_ahead = nullptr;
  use_everywhere(world, {2});
  ASSERT_TRUE(world.pass(1, 1).ok());
  world.expect_whole(1, 1, {2});
  world.expect_nothing_lost();
}

// Neurons that the cache below refuses to prefetch wait for their pass; the others do not.
TEST(Chain, WhatIsRefusedBelowIsNotMovedAhead) {
  ScriptedWorld world(
      {.neurons = {1, 1, 4}, .slots = {0, 0, 4}, .neurons_per_block = 4, .below = {{0, 0, 4}}});
  world.script.admit = keep_what_fits();
  world.script_below.admit = [](const tierd_set_view* missing, int priority, uint32_t, uint8_t* verdict,
                                tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i) {
      const bool refuse = priority == TIERD_PRIORITY_PREFETCH && missing->idx[i] % 2 == 1;
      verdict[i] = refuse ? TIERD_VERDICT_REFUSE : TIERD_VERDICT_BYPASS;
    }
    return 0;
  };
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{2, 2}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.reads(), "[0][2,4][1]");
  EXPECT_EQ(world.moved(), 1u + 1u + 2u);
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {0, 1, 2, 3});
  EXPECT_EQ(world.scheduler->counters().staged + world.scheduler->counters().hits, 2u);
  world.expect_nothing_lost();
}

TEST(Chain, AReadThatFailsBelowFailsThePass) {
  ScriptedWorld world({.neurons = {4}, .slots = {2}, .neurons_per_block = 4, .attempts = 2, .below = {{2}}});
  world.script.admit = world.script_below.admit = keep_what_fits();
  world.idle = [&] {
    if (!world.flash.open.empty()) world.flash.finish(0, DoneStatus::io_error, 1);
  };
  const Status failed = world.pass(0, 0);
  ASSERT_EQ(failed.code(), Code::io_error);
  EXPECT_THAT(failed.error().line(), HasSubstr("weights.bin: extent"));
  world.expect_nothing_lost();
}

TEST(Chain, AMoveIsTriedAgainAndThenFailsThePass) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}, .neurons_per_block = 4, .attempts = 3, .below = {{4}}});
  world.script.admit = world.script_below.admit = keep_what_fits();
  int failures = 2;
  world.idle = [&] {
    if (!world.flash.open.empty()) return world.flash.finish();
    if (world.mover.open.empty()) return;
    world.mover.finish(0, failures-- > 0 ? DoneStatus::internal : DoneStatus::ok);
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3});
  EXPECT_EQ(world.scheduler->counters().retries, 2u);
  world.expect_nothing_lost();

  ScriptedWorld broken({.neurons = {4}, .slots = {4}, .neurons_per_block = 4, .attempts = 2, .below = {{4}}});
  broken.script.admit = broken.script_below.admit = keep_what_fits();
  broken.idle = [&] {
    if (!broken.flash.open.empty()) return broken.flash.finish();
    if (!broken.mover.open.empty()) broken.mover.finish(0, DoneStatus::internal);
  };
  const Status failed = broken.pass(0, 0);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().line(),
            "agent 3: moving neurons from memory 1 to memory 2 failed after 2 attempts: internal");
  broken.expect_nothing_lost();
}

// The whole pass is posted before any move ends: a unit that moves its own neurons orders its runs.
TEST(Chain, RunsArePostedBehindTheirMoves) {
  for (const bool bundles : {false, true}) {
    ScriptedWorld world({.neurons = {3 * kRun},
                         .slots = {0},
                         .neurons_per_block = kRun,
                         .bundles = bundles,
                         .below = {{3 * kRun}},
                         .moves_itself = true});
    world.script_below.fill = [] { return std::vector<Wanted>{{0, first(3 * kRun)}}; };
    ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
    bool posted = false;
    world.idle = [&] {
      if (!posted) {
        EXPECT_EQ(world.mover.open.size(), 3u);
        EXPECT_EQ(world.moving.waiting_runs(), 3u);
      }
      posted = true;
      world.mover.finish(world.mover.open.size() - 1);  // the last one first
    };
    ASSERT_TRUE(world.pass(0, 0).ok());
    EXPECT_TRUE(posted);
    world.expect_whole(0, 0, first(3 * kRun));
    EXPECT_EQ(world.compute.log.size(), 3u);
    EXPECT_TRUE(world.compute.log.back().after);
    world.expect_nothing_lost();
  }
}

TEST(Chain, ARunOfTwoMovesWaitsForOneOfThem) {
  ScriptedWorld world({.neurons = {kRun},
                       .slots = {kRun / 2},
                       .neurons_per_block = kRun,
                       .bundles = true,
                       .below = {{kRun}},
                       .moves_itself = true});
  world.script.admit = [](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                          tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i)
      verdict[i] = i % 2 == 0 ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
    return 0;
  };
  world.script_below.fill = [] { return std::vector<Wanted>{{0, first(kRun / 2)}}; };
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, first(kRun));
  EXPECT_EQ(world.residency.valid_count(0), kRun / 2);
  world.expect_nothing_lost();
}

TEST(Chain, AMoveThatARunIsBehindIsNotTriedAgain) {
  ScriptedWorld world(
      {.neurons = {4}, .slots = {2}, .neurons_per_block = 4, .below = {{4}}, .moves_itself = true});
  world.script.admit = world.script_below.admit = keep_what_fits();
  bool fails = true;
  world.idle = [&] {
    if (!world.flash.open.empty()) return world.flash.finish();
    world.mover.finish(0, fails ? DoneStatus::internal : DoneStatus::ok);
  };
  EXPECT_EQ(world.pass(0, 0).error().line(),
            "agent 1: moving neurons from memory 1 to memory 2 failed after 1 attempts: internal");
  world.expect_nothing_lost();
  EXPECT_TRUE(world.compute.log.empty() || world.compute.log.back().neurons.empty());
  fails = false;
  ASSERT_TRUE(world.pass(0, 1).ok());
  world.expect_whole(0, 1, {0, 1, 2, 3});
  world.expect_nothing_lost();
}

TEST(Chain, RunsBehindMovesInAnyHistory) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    WorldOptions options;
    options.neurons = {70, 90, 130};
    options.slots = {20, 10, 0};
    options.blocks = 2 + random.below(3);
    options.neurons_per_block = kRun;
    options.bundles = seed % 2 == 0;
    options.messages = 12;
    options.credits = 4;
    options.seed = seed;
    options.below = {{70, 0, 40}};
    options.blocks_below = 2;
    options.moves_itself = true;
    options.direct = seed % 3 == 0;
    ScriptedWorld world(options);
    world.script.admit = world.script_below.admit = keep_what_fits();
    world.script.look_ahead = [](SiteId site) { return std::vector<Ahead>{{(site + 1) % 3, 1}}; };
    Neurons used;
    world.script.predict = [&](SiteId, tierd_set_out* out) {
      out->n = static_cast<uint32_t>(used.size());
      std::copy(used.begin(), used.end(), out->idx);
      return 0;
    };
    world.idle = [&] {
      ManualFlash& agent = !world.mover.open.empty() && random.below(2) == 0 ? world.mover : world.flash;
      if (!agent.open.empty()) agent.finish(random.below(static_cast<uint32_t>(agent.open.size())));
    };
    for (uint32_t step = 0; step < 4; ++step) {
      for (SiteId site = 0; site < 3; ++site) {
        used.clear();
        for (uint32_t i = 0; i < options.neurons[site]; ++i) {
          if (random.below(3) != 0) used.push_back(i);
        }
        ASSERT_TRUE(world.pass(site, step).ok());
        world.expect_whole(site, step, used);
      }
      ASSERT_TRUE(world.end_step(step).ok());
    }
    world.expect_nothing_lost();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Chain, BothAreFilledFromTheStart) {
  ScriptedWorld world({.neurons = {6}, .slots = {2}, .neurons_per_block = 6, .below = {{4}}});
  world.script.fill = [] { return std::vector<Wanted>{{0, Neurons{0, 1}}}; };
  world.script_below.fill = [] { return std::vector<Wanted>{{0, Neurons{1, 2, 3}}}; };
  uint64_t bytes = 0;
  ASSERT_TRUE(world.run(world.scheduler->fill([&](uint64_t landed) { bytes += landed; })).ok());
  EXPECT_EQ(world.reads(), "[1,2,3][0]") << "what both want is read once";
  EXPECT_EQ(world.moved(), 2u);
  EXPECT_EQ(world.residency.valid_count(0), 2u);
  EXPECT_EQ(bytes, 5u * kSlot);
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(world.scheduler->counters().hits, 2u);
  world.expect_nothing_lost();
}

TEST(Chain, AFillThatCannotBeReadEnds) {
  ScriptedWorld world({.neurons = {6}, .slots = {2}, .neurons_per_block = 6, .attempts = 1, .below = {{4}}});
  world.script.fill = [] { return std::vector<Wanted>{{0, Neurons{0, 1}}}; };
  world.idle = [&] {
    if (!world.flash.open.empty()) world.flash.finish(0, DoneStatus::io_error);
  };
  EXPECT_EQ(world.run(world.scheduler->fill({})).code(), Code::io_error);
  world.expect_nothing_lost();
}

TEST(Chain, APromptBypassesBothCaches) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}, .neurons_per_block = 4, .below = {{4}}});
  std::vector<std::string> asked;
  world.script.admit = world.script_below.admit = noting(asked, everything_passes);
  ASSERT_TRUE(world.pass(0, 0, {}, true).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3});
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(world.script_below.calls.empty());
  world.expect_nothing_lost();
}

}  // namespace
}  // namespace tierd
