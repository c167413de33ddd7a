// An agent is lost from any of its messages on. A pass that needs it gets a one-line error, and nothing hangs
// or is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/random.h"
#include "tests/kernel/scripted_world.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(LostAgent, APassThatReadsSaysSo) {
  ScriptedWorld world({.neurons = {4}, .slots = {2}, .neurons_per_block = 2});
  world.script.admit = keep_what_fits();
  world.mortals[1].dies_at = 2;
  const Status status = world.pass(0, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().line(), "agent 2 (manual flash): is lost");
  EXPECT_EQ(status.error().code, Code::lost);
  EXPECT_EQ(world.dispatcher.first_lost(), 2);
  EXPECT_EQ(world.scheduler->counters().retries, 0u) << "nothing is tried again";
  world.expect_nothing_lost();
}

TEST(LostAgent, APassThatComputesSaysSo) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}, .neurons_per_block = 4});
  world.script.admit = keep_what_fits();
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.mortals[0].dies_at = 3;
  const Status status = world.pass(0, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().line(), "agent 1 (recording compute): is lost");
  EXPECT_EQ(world.pass(0, 2).error().line(), status.error().line());
  world.expect_nothing_lost();
}

TEST(LostAgent, WhatIsReadAheadIsACounter) {
  ScriptedWorld world({.neurons = {1, 4}, .slots = {1, 0}, .neurons_per_block = 4});
  world.script.admit = keep_what_fits();
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
  };
  world.mortals[1].dies_at = 2;
  ASSERT_TRUE(world.pass(0, 1).ok()) << "it is resident";
  world.settle();
  EXPECT_EQ(world.scheduler->counters().prefetch_failed, 1u);
  EXPECT_FALSE(world.pass(1, 1).ok());
  world.expect_nothing_lost();
}

// Units compute in several editions from memories over another one. Each agent dies in turn, at each message
// that it accepts in a history that is the same each time.
void expect_ends_whichever_dies(uint32_t units, bool moves_itself) {
  constexpr uint32_t kSteps = 3;
  const size_t agents = moves_itself ? units + 1 : units + 2;
  for (uint64_t seed = 1; seed <= (kSanitized ? 2 : 6); ++seed) {
    for (size_t mortal = 0; mortal < agents; ++mortal) {
      for (uint32_t dies_at = 1;; ++dies_at) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", agent " + std::to_string(mortal + 1) +
                     " dies at its message " + std::to_string(dies_at));
        Random random(seed);
        WorldOptions options;
        options.neurons = {70, 90, 130};
        options.slots = {20, 10, 0, 30, 90, 50};
        options.blocks = 2;
        options.neurons_per_block = kRun;
        options.units = units;
        options.moves_itself = moves_itself;
        options.bundles = seed % 2 == 0;
        options.editions = 2;
        options.messages = 12;
        options.credits = 4;
        options.below = {{70, 0, 40, 40, 0, 130}};
        options.blocks_below = 2;
        options.direct = seed % 3 == 0;
        ScriptedWorld world(options);
        world.script.admit = world.script_below.admit = keep_what_fits();
        world.script.look_ahead = [](SiteId site) { return std::vector<Ahead>{{(site + 1) % 3, 1}}; };
        const auto half = [&](uint8_t* answer, uint32_t n) {
          for (uint32_t i = 0; i < n; ++i) answer[i] = static_cast<uint8_t>(random.below(2));
          return 0;
        };
        if (units == 2)
          world.script.assign = [&](const tierd_set_view* set, uint8_t* unit) { return half(unit, set->n); };
        world.script.choose = [&](const tierd_set_view* set, uint8_t* level) { return half(level, set->n); };
        MortalAgent& dying = world.mortals[mortal];
        dying.dies_at = dies_at;
        world.idle = [&] {
          world.forget_what_died();
          ManualFlash& agent = !world.mover.open.empty() && random.below(2) == 0 ? world.mover : world.flash;
          if (!agent.open.empty()) agent.finish(random.below(static_cast<uint32_t>(agent.open.size())));
        };
        for (uint32_t step = 0; step < kSteps; ++step) {
          for (SiteId site = 0; site < 3; ++site) {
            const Status status = world.pass(site, step);
            if (status.ok()) continue;
            EXPECT_TRUE(dying.dead());
            EXPECT_THAT(status.error().line(), HasSubstr("is lost"));
          }
          ASSERT_TRUE(world.end_step(step).ok());
        }
        const bool died = dying.dead();
        world.expect_nothing_lost();
        if (testing::Test::HasFailure()) return;
        if (!died) break;  // the agent received fewer messages
      }
    }
  }
}

TEST(LostAgent, EveryPassEndsWhicheverDies) {
  expect_ends_whichever_dies(2, false);
}

TEST(LostAgent, EveryPassEndsWhereTheUnitMovesItself) {
  expect_ends_whichever_dies(1, true);
}

}  // namespace
}  // namespace tierd
