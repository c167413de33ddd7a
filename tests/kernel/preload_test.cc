// Neurons prefetched into a memory from which no unit computes, and not kept there, stay in its blocks until
// their pass is over. Fetches for that pass take them from there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "tests/kernel/scripted_answers.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// Three sites over a memory whose cache keeps nothing. At the first site the cache wishes for `wished` of the
// last.
WorldOptions preloading() {
  return {.neurons = {1, 1, 8}, .slots = {0, 0, 0}, .neurons_per_block = 4, .below = {{0, 0, 0}}};
}
void wish_below(ScriptedWorld& world, std::optional<Neurons> wished) {
  world.script_below.ahead = [wished = std::move(wished)](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{2, 2, wished}} : std::vector<Ahead>{};
  };
}
// Makes these neurons of the last site active.
void use_at_last_site(ScriptedWorld& world, const Neurons& neurons) {
  world.script.predict = [neurons](SiteId site, tierd_set_out* out) {
    if (site != 2) return out->all = 1, 0;
    return answer_neurons(neurons, out);
  };
}

TEST(Preload, WaitsInBlocksForItsPass) {
  ScriptedWorld world(preloading());
  wish_below(world, std::nullopt);
  use_at_last_site(world, {1, 3, 6});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  world.end_all();
  EXPECT_EQ(world.reads(), "[0][2,3,4,5][6,7,8,9]");
  EXPECT_EQ(world.moved(), 1u) << "the first site's neuron alone went further";
  ASSERT_TRUE(world.pass(1, 0).ok());
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {1, 3, 6});
  EXPECT_EQ(world.reads(), "[0][2,3,4,5][6,7,8,9][1]") << "nothing is read twice";
  const MemoryCounters& below = world.scheduler->counters(1);
  EXPECT_EQ(below.passed_on.staged, 3u);
  ASSERT_TRUE(world.end_step(0).ok());
  EXPECT_EQ(below.wasted, 5u) << "nobody took them";
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

// The predictor's prefetches take from the same blocks without freeing them: the pass may use others.
TEST(Preload, ServesLookAheadAndThePass) {
  ScriptedWorld world(preloading());
  wish_below(world, std::nullopt);
  world.script.look_ahead = [](SiteId site) {
    return site == 1 ? std::vector<Ahead>{{2, 1, Neurons{0, 1}}} : std::vector<Ahead>{};
  };
  use_at_last_site(world, {1, 5, 7});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  world.end_all();
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.settle();
  world.end_all();
  EXPECT_EQ(world.moved(), 4u) << "two of the last site are above";
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {1, 5, 7});
  EXPECT_EQ(world.moved(), 6u);
  EXPECT_EQ(world.reads(), "[0][2,3,4,5][6,7,8,9][1]");
  ASSERT_TRUE(world.end_step(0).ok());
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

// The pass fetches its own neurons; the rest of the wish is not read any more.
TEST(Preload, IsOvertakenByItsPass) {
  WorldOptions options = preloading();
  options.blocks_below = 2;  // one is reserved for demands
  ScriptedWorld world(options);
  wish_below(world, std::nullopt);
  use_at_last_site(world, {1, 3, 6});
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(1, 0).ok());
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {1, 3, 6});
  EXPECT_THAT(world.reads(), HasSubstr("[8]"));
  EXPECT_THAT(world.reads(), testing::Not(HasSubstr("9")));
  ASSERT_TRUE(world.end_step(0).ok());
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

TEST(Preload, ThatFailsIsReadAgainByItsPass) {
  ScriptedWorld world(preloading());
  wish_below(world, std::nullopt);
  use_at_last_site(world, {1, 6});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_EQ(world.flash.open.size(), 2u);
  world.flash.finish(0, DoneStatus::io_error);
  world.end_all();
  ASSERT_TRUE(world.pass(1, 0).ok());
  ASSERT_TRUE(world.pass(2, 0).ok());
  world.expect_whole(2, 0, {1, 6});
  EXPECT_EQ(world.scheduler->counters(1).prefetch_failed, 1u);
  ASSERT_TRUE(world.end_step(0).ok());
  ASSERT_TRUE(world.drain().ok());
  world.expect_nothing_lost();
}

TEST(Preload, OfAStepThatIsGivenUpGivesItsBlocksBack) {
  ScriptedWorld world(preloading());
  wish_below(world, std::nullopt);
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  world.end_all();
  ASSERT_TRUE(world.drain().ok());
  EXPECT_EQ(world.scheduler->counters(1).wasted, 8u);
  world.expect_nothing_lost();
}

// Draws which neurons are kept, named by wishes, predicted and used, and the order in which reads and moves
// end or fail.
TEST(Preload, ServesAnyHistory) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto some_of = [&](uint32_t n, uint32_t in) {
      Neurons neurons;
      for (uint32_t i = 0; i < n; ++i) {
        if (random.below(in) != 0) neurons.push_back(i);
      }
      return neurons;
    };
    WorldOptions options;
    options.neurons = {70, 90, 130};
    options.slots = {20, 10, 0};
    options.blocks = 2 + random.below(3);
    options.neurons_per_block = kRun;
    options.bundles = seed % 2 == 0;
    options.messages = 16;
    options.credits = 4;
    options.seed = seed;
    options.below = {{30, 0, 40}};
    options.memories_below = 1 + seed % 5 / 4;
    options.blocks_below = 2 + random.below(12);
    options.units = 1 + seed % 7 / 6;
    options.moves_itself = options.units == 1 && options.memories_below == 1 && seed % 3 == 0;
    ScriptedWorld world(options);
    world.script.admit = world.script_below.admit = keep_what_fits();
    world.script_below.ahead = [&](SiteId site) {
      std::vector<Ahead> wishes;
      for (uint32_t distance = 1; distance <= 2; ++distance) {
        const SiteId later = (site + distance) % 3;
        wishes.push_back({later, distance});
        if (random.below(2) == 0) wishes.back().neurons = some_of(options.neurons[later], 2);
      }
      return wishes;
    };
    world.script.look_ahead = [&](SiteId site) {
      const uint32_t distance = 1 + random.below(2);
      const SiteId later = (site + distance) % 3;
      return std::vector<Ahead>{{later, distance, some_of(options.neurons[later], 2)}};
    };
    Neurons used;
    world.script.predict = [&](SiteId, tierd_set_out* out) {
      out->n = static_cast<uint32_t>(used.size());
      std::copy(used.begin(), used.end(), out->idx);
      return 0;
    };
    world.idle = [&] {
      ManualFlash& agent = !world.mover.open.empty() && random.below(2) == 0 ? world.mover : world.flash;
      if (agent.open.empty()) return;
      const uint32_t which = random.below(static_cast<uint32_t>(agent.open.size()));
      const bool ahead = agent.open[which].message.priority == Priority::prefetch;
      const bool fails = &agent == &world.flash && ahead && random.below(8) == 0;
      agent.finish(which, fails ? DoneStatus::io_error : DoneStatus::ok);
    };
    for (uint32_t step = 0; step < 4; ++step) {
      for (SiteId site = 0; site < 3; ++site) {
        used = some_of(options.neurons[site], 3);
        ASSERT_TRUE(world.pass(site, step).ok());
        world.expect_whole(site, step, used);
      }
      ASSERT_TRUE(world.end_step(step).ok());
    }
    ASSERT_TRUE(world.drain().ok());
    world.expect_nothing_lost();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tierd
