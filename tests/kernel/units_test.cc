// Several computing units, of which the first does all dense work: which neurons each one gets, and its
// takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Assigns neuron i to unit i % units.
void deal(ScriptedWorld& world, uint32_t units) {
  world.script.assign = [units](const tierd_set_view* set, uint8_t* unit) {
    for (uint32_t i = 0; i < set->n; ++i)
      unit[i] = static_cast<uint8_t>((set->idx == nullptr ? i : set->idx[i]) % units);
    return 0;
  };
}

TEST(Units, TheInputGoesOutAndTheResultsComeBackOnce) {
  ScriptedWorld world({.neurons = {6}, .slots = {0}, .units = 2});
  deal(world, 2);
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.order.front(), "1 run B");
  EXPECT_EQ(world.order.back(), "1 run takes 1,3,5 of 2 A");
  for (const char* line : {"1 compute 0", "1 compute 2", "1 compute 4", "2 compute 1 takes input of 1",
                           "2 compute 3", "2 compute 5"})
    EXPECT_THAT(world.order, testing::Contains(line).Times(1));
  EXPECT_EQ(world.scheduler->counters().misses, 6u);
  world.expect_nothing_lost();
}

TEST(Units, OneThatHasNoPartIsLeftAlone) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}, .neurons_per_block = 4, .units = 3});
  world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
    std::fill_n(unit, set->n, uint8_t{0});
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(world.order, ElementsAre("1 run B", "1 compute 0,1,2,3 A"));
  world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
    std::fill_n(unit, set->n, uint8_t{2});
    return 0;
  };
  world.order.clear();
  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_THAT(world.order,
              ElementsAre("1 run B", "3 compute 0,1,2,3 takes input of 1", "1 run takes 0,1,2,3 of 3 A"));
}

TEST(Units, WhatAUnitKeepsIsItsOwn) {
  ScriptedWorld world({.neurons = {4}, .slots = {2}, .neurons_per_block = 4, .units = 2});
  deal(world, 2);
  world.script.admit = [](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                          tierd_victims_out*) {
    std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_KEEP});
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_TRUE(world.residencies[0].valid(0, 2));
  EXPECT_FALSE(world.residencies[0].valid(0, 1));
  EXPECT_TRUE(world.residencies[1].valid(0, 1));
  world.order.clear();
  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_EQ(world.scheduler->counters().hits, 4u);
  EXPECT_THAT(world.order, ElementsAre("1 run B", "1 compute 0,2", "2 compute 1,3 takes input of 1",
                                       "1 run takes 1,3 of 2 A"));
  // With the assignment reversed, both units miss everything.
  world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
    for (uint32_t i = 0; i < set->n; ++i) unit[i] = static_cast<uint8_t>((i + 1) % 2);
    return 0;
  };
  world.script.admit = nullptr;
  ASSERT_TRUE(world.pass(0, 2).ok());
  EXPECT_EQ(world.scheduler->counters().hits, 4u);
  world.expect_nothing_lost();
}

TEST(Units, ReadsAheadGoToTheHomes) {
  ScriptedWorld world({.neurons = {1, 4}, .slots = {0, 0}, .neurons_per_block = 2, .units = 2});
  deal(world, 2);
  world.placement.place(1, {0, 1, 0, 1});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  while (!world.flash.open.empty()) {
    world.flash.finish();
    world.settle();
  }
  EXPECT_EQ(world.reads(), "[0][1,3][2,4]");
  world.order.clear();
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.scheduler->counters().staged, 4u);
  EXPECT_EQ(world.reads(), "[0][1,3][2,4]");
  world.expect_nothing_lost();
}

TEST(Units, AnAnswerBeyondTheUnitsIsAFault) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}, .units = 2});
  deal(world, 3);
  const Status status = world.pass(0, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().line(), HasSubstr("assign: unit 2, expected a number below 2"));
  world.heal();
  deal(world, 2);
  EXPECT_TRUE(world.pass(0, 1).ok());
  world.expect_nothing_lost();
}

TEST(Units, AFailureAnywhereFailsThePassAndNothingElse) {
  for (uint32_t fails = 0; fails < 2; ++fails) {
    ScriptedWorld world({.neurons = {4}, .slots = {0}, .units = 2});
    deal(world, 2);
    world.computes[fails].fail_next = true;
    const Status status = world.pass(0, 0);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().line(), HasSubstr("compute failed"));
    EXPECT_TRUE(world.pass(0, 1).ok());
    world.expect_nothing_lost();
  }
}

// Drawn assignments, sets, verdicts, delivery orders and failures: each neuron is computed once, by its
// assigned unit, between input and results, and nothing is lost.
TEST(Units, AnyHistoryKeepsTheOrder) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    WorldOptions options;
    options.units = 2 + random.below(3);
    options.neurons = {1 + random.below(6), 1 + random.below(6), 1 + random.below(6)};
    options.slots = {random.below(4), random.below(4), random.below(4)};
    options.blocks = 1 + random.below(5);
    options.neurons_per_block = 1 + random.below(3);
    options.messages = 4 + random.below(30);
    options.credits = 1 + random.below(8);
    if (random.below(2) == 0) options.seed = seed;
    for (size_t s = 0; s < 3; ++s) options.slots[s] = std::min(options.slots[s], options.neurons[s]);
    ScriptedWorld world(options);
    std::map<uint32_t, uint8_t> assigned;
    world.script.assign = [&](const tierd_set_view* set, uint8_t* unit) {
      assigned.clear();
      for (uint32_t i = 0; i < set->n; ++i) {
        unit[i] = static_cast<uint8_t>(random.below(options.units));
        assigned[set->idx == nullptr ? i : set->idx[i]] = unit[i];
      }
      return 0;
    };
    world.script.admit = [&](const tierd_set_view* missing, int, uint32_t free_slots, uint8_t* verdict,
                             tierd_victims_out*) {
      for (uint32_t i = 0; i < missing->n; ++i) {
        const bool keep = free_slots > 0 && random.below(2) == 0;
        free_slots -= keep ? 1 : 0;
        verdict[i] = keep ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
      }
      return 0;
    };
    world.script.look_ahead = [&](SiteId site) {
      return random.below(2) == 0 ? std::vector<Ahead>{{(site + 1) % 3, 1}} : std::vector<Ahead>{};
    };
    for (SiteId s = 0; s < 3; ++s) {
      std::vector<uint8_t> homes(options.neurons[s]);
      for (uint8_t& home : homes) home = static_cast<uint8_t>(random.below(options.units));
      world.placement.place(s, homes);
    }
    for (uint32_t step = 0; step < 4; ++step) {
      for (SiteId site = 0; site < 3; ++site) {
        for (RecordingCompute& unit : world.computes) unit.log.clear();
        const Status status = world.pass(site, step);
        ASSERT_TRUE(status.ok()) << status.error().line();
        for (uint32_t u = 0; u < options.units; ++u) {
          std::vector<uint32_t> computed, expected;
          bool here = u == 0;
          for (const Computed& c : world.computes[u].log) {
            here |= std::ranges::count(c.takes, "input of 1") != 0;
            if (c.neurons.empty()) continue;
            EXPECT_TRUE(here);
            computed.insert(computed.end(), c.neurons.begin(), c.neurons.end());
          }
          for (const auto& [neuron, unit] : assigned) {
            if (unit == u) expected.push_back(neuron);
          }
          std::sort(computed.begin(), computed.end());
          EXPECT_EQ(computed, expected) << "unit " << u;
        }
        EXPECT_TRUE(world.compute.log.front().before);
        EXPECT_TRUE(world.compute.log.back().after);
        std::vector<std::string> merged;
        for (const Computed& c : world.compute.log) {
          if (c.after) merged = c.takes;
          EXPECT_TRUE(c.after || c.takes.empty());
        }
        std::vector<std::string> expected;
        for (uint32_t u = 1; u < options.units; ++u) {
          std::string neurons;
          for (const auto& [neuron, unit] : assigned) {
            if (unit == u) neurons += (neurons.empty() ? "" : ",") + std::to_string(neuron);
          }
          if (!neurons.empty()) expected.push_back(neurons + " of " + std::to_string(u + 1));
        }
        EXPECT_EQ(merged, expected) << "in the order of the units";
      }
      ASSERT_TRUE(world.end_step(step).ok());
    }
    world.expect_nothing_lost();
  }
}

}  // namespace
}  // namespace tierd
