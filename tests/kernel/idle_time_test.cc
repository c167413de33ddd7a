#include "core/kernel/pass/idle_time.h"

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

TEST(IdleTime, AWindowIsIdleWhileNoUnitRuns) {
  IdleTime time;
  time.add_window({100, 200}, {{150, 160}, {90, 110}, {155, 170}, {195, 220}, {300, 310}});
  EXPECT_EQ(time.counters().windows, 1u);
  EXPECT_EQ(time.counters().ns, 40u + 25);
}

TEST(IdleTime, AMoveIsHiddenAsFarAsItLiesInWindows) {
  IdleTime time;
  time.add_window({100, 200}, {});
  const SpareMove moves[] = {{.start_ns = 120, .done_ns = 150, .neurons = 2, .bytes = 10},
                             {.start_ns = 190, .done_ns = 230, .neurons = 1, .bytes = 5}};
  time.add_moves({moves, 1});
  EXPECT_EQ(time.counters().hidden_ns, 30u);
  // The move begins in the first window and ends in the second. The time between the windows is not hidden.
  time.add_window({220, 300}, {});
  time.add_moves({moves + 1, 1});
  EXPECT_EQ(time.counters().hidden_ns, 30u + 10 + 10);
  EXPECT_EQ(time.counters().move_ns, 30u + 40);
  EXPECT_EQ(time.counters().moves, 2u);
  EXPECT_EQ(time.counters().neurons, 3u);
  EXPECT_EQ(time.counters().bytes, 15u);
}

// Compares with a twin that examines every ns.
TEST(IdleTime, CountsAsANaiveTwinDoes) {
  constexpr uint64_t kEnd = 400;
  Random random(3);
  for (int trial = 0; trial < 100; ++trial) {
    IdleTime time;
    std::vector<bool> idle(kEnd, false);
    uint64_t idle_ns = 0, at = 0;
    while (at + 40 < kEnd) {
      const uint64_t begin = at + random.below(10), end = begin + random.below(30);
      std::vector<IdleTime::Interval> runs;
      for (uint32_t i = random.below(4); i > 0; --i) {
        const uint64_t from = begin + random.below(30);
        runs.emplace_back(from, from + random.below(10));
      }
      for (uint64_t ns = begin; ns < end; ++ns) {
        idle[ns] = std::ranges::none_of(runs, [&](const auto& r) { return r.first <= ns && ns < r.second; });
        idle_ns += idle[ns] ? 1 : 0;
      }
      time.add_window({begin, end}, runs);
      at = end;
    }
    uint64_t hidden = 0;
    for (int i = 0; i < 20; ++i) {
      const uint64_t from = random.below(kEnd), to = std::min<uint64_t>(kEnd, from + random.below(60));
      for (uint64_t ns = from; ns < to; ++ns) hidden += idle[ns] ? 1 : 0;
      const SpareMove move{.start_ns = from, .done_ns = to};
      time.add_moves({&move, 1});
    }
    EXPECT_EQ(time.counters().ns, idle_ns);
    EXPECT_EQ(time.counters().hidden_ns, hidden);
  }
}

// Two units whose memories fetch from each other: a pass that the first one computes leaves the second idle.
TEST(IdleTime, IsThatOfTheSchedulersWindows) {
  ScriptedWorld world({.neurons = {4, 4}, .slots = {4, 0}, .units = 2, .linked_units = true});
  world.script.admit = keep_what_fits();
  world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
    std::fill_n(unit, set->n, uint8_t{set->site == 0});
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.script.meanwhile = [&](SiteId site) {
    return site == 1 ? std::vector<Wanted>{{0, Neurons{1, 3}}} : std::vector<Wanted>();
  };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.end_all();
  const IdleCounters idle = world.scheduler->idle();
  EXPECT_EQ(idle.windows, 2u) << "in each pass one of the units computes";
  EXPECT_EQ(idle.neurons, 2u);
  EXPECT_EQ(idle.moves, 2u) << "a block has room for one neuron";
  EXPECT_LE(idle.hidden_ns, idle.move_ns);
  ASSERT_TRUE(world.pass(1, 1, {}, true).ok());
  EXPECT_EQ(world.scheduler->idle().windows, 2u) << "a prompt has none";
}

}  // namespace
}  // namespace tierd
