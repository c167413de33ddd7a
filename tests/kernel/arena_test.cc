// The budget changes between two steps: what the cache evicts, which slots move, what agents receive, and
// invalid answers.
#include "core/kernel/supply/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Site 1 has 6 neurons and 4 slots, which hold 0, 2, 3 and 5 in this order. Site 0 has one slot, empty.
class ArenaWorld {
 public:
  explicit ArenaWorld(uint32_t units = 1)
      : world({.neurons = {4, 6}, .slots = {1, 4}, .units = units, .resizes = true}) {
    world.script.fill = [] { return std::vector<Wanted>{{1, Neurons{0, 2, 3, 5}}}; };
    EXPECT_TRUE(world.run(world.scheduler->fill({})).ok());
    EXPECT_EQ(world.residency.slot(1, 5), 3u);
    world.script.fill = {};
    world.script.calls.clear();
    world.order.clear();
  }
  // Sets the cache's answer to `resize`.
  void answer(std::vector<uint32_t> slots, std::vector<tierd_neuron> victims) {
    world.script.resize = [slots, victims, this](uint64_t bytes, uint32_t* out, tierd_victims_out* leaving) {
      most.assign(out, out + slots.size());
      asked = bytes;
      std::copy(slots.begin(), slots.end(), out);
      std::copy(victims.begin(), victims.end(), leaving->item);
      leaving->n = static_cast<uint32_t>(victims.size());
      return 0;
    };
  }
  Status resize(uint64_t slots) {
    EXPECT_TRUE(world.drain().ok());
    return world.run(world.scheduler->resize(ArenaParts(world.computes.size(), slots * kSlot)));
  }
  // Runs a pass of site 1 after which all neurons of site 0 are in flight.
  void read_ahead() {
    world.script.look_ahead = [](SiteId site) {
      return site == 1 ? std::vector<Ahead>{{0, 1}} : std::vector<Ahead>{};
    };
    world.script.admit = keep_what_fits();
    ASSERT_TRUE(world.pass(1, 0).ok());
  }
  void expect_as_it_was() {
    EXPECT_EQ(world.residency.max_slots(0), 1u);
    EXPECT_EQ(world.residency.max_slots(1), 4u);
    for (const uint32_t neuron : {0, 2, 3, 5}) EXPECT_TRUE(world.residency.valid(1, neuron));
    EXPECT_THAT(world.order, ElementsAre());
    EXPECT_THAT(world.script.calls, ElementsAre());
  }
  // Expects that every neuron is computed from its own bytes.
  void expect_computed(uint32_t step) {
    for (const SiteId site : {0, 1}) ASSERT_TRUE(world.pass(site, step).ok());
    world.expect_whole(0, step, {0, 1, 2, 3});
    world.expect_whole(1, step, {0, 1, 2, 3, 4, 5});
    world.expect_nothing_lost();
  }

  ScriptedWorld world;
  std::vector<uint32_t> most;  // of each edition, as given to the cache
  uint64_t asked = 0;
};

TEST(Arena, TheAgentHearsAtTheStartWhatIsInUse) {
  ScriptedWorld world({.neurons = {4, 6, 3}, .slots = {4, 0, 2}, .units = 2, .resizes = true});
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  EXPECT_THAT(world.order, ElementsAre("1 use 0-4 10-12", "2 use 0-4 10-12"));
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  EXPECT_EQ(world.order.size(), 2u);
}

TEST(Arena, SitesSideBySideAreOneRange) {
  ScriptedWorld world({.neurons = {4, 6}, .slots = {4, 6}, .resizes = true});
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  EXPECT_THAT(world.order, ElementsAre("1 use 0-10"));
}

TEST(Arena, ShrinksToWhatTheCacheKeeps) {
  ArenaWorld arena;
  arena.answer({0, 2}, {{1, 2}, {1, 0}});
  ASSERT_TRUE(arena.resize(2).ok());
  EXPECT_EQ(arena.asked, 2u * kSlot);
  EXPECT_EQ(arena.most, (std::vector<uint32_t>{4, 6}));
  EXPECT_THAT(arena.world.script.calls, ElementsAre("shrunk 1:2,0"));
  EXPECT_THAT(arena.world.order, ElementsAre("1 move 6-4 7-5", "1 use 4-6"));
  EXPECT_EQ(arena.world.residency.max_slots(1), 2u);
  EXPECT_EQ(arena.world.residency.slot(1, 3), 0u);
  EXPECT_EQ(arena.world.residency.slot(1, 5), 1u);
  EXPECT_EQ(arena.world.scheduler->counters().evictions, 2u);
  arena.expect_computed(0);
  EXPECT_EQ(arena.world.scheduler->counters().hits, 2u);
}

TEST(Arena, GrowsAndFills) {
  ArenaWorld arena;
  arena.answer({2, 6}, {});
  arena.world.script.fill = [] { return std::vector<Wanted>{{0, Neurons{1, 3}}, {1}}; };
  ASSERT_TRUE(arena.resize(8).ok());
  EXPECT_THAT(arena.world.order, ElementsAre("1 use 0-2 4-10"));
  ASSERT_TRUE(arena.world.run(arena.world.scheduler->fill({})).ok());
  EXPECT_EQ(arena.world.residency.valid_count(0), 2u);
  EXPECT_EQ(arena.world.residency.valid_count(1), 6u);
  arena.expect_computed(0);
  EXPECT_EQ(arena.world.scheduler->counters().hits, 8u);
}

// Neurons left by another cache occupy slots, so not all wanted neurons fit.
TEST(Arena, FillsAsFarAsThereIsRoom) {
  ArenaWorld arena;
  arena.answer({0, 5}, {});
  arena.world.script.fill = [] { return std::vector<Wanted>{{1, Neurons{0, 1, 2, 3, 4}}}; };
  ASSERT_TRUE(arena.resize(5).ok());
  ASSERT_TRUE(arena.world.run(arena.world.scheduler->fill({})).ok());
  EXPECT_TRUE(arena.world.residency.valid(1, 1));
  EXPECT_FALSE(arena.world.residency.valid(1, 4));
  arena.expect_computed(0);
}

TEST(Arena, ToNothingAndBack) {
  ArenaWorld arena;
  arena.answer({0, 0}, {{1, 0}, {1, 2}, {1, 3}, {1, 5}});
  ASSERT_TRUE(arena.resize(0).ok());
  EXPECT_THAT(arena.world.order, ElementsAre("1 use"));
  arena.expect_computed(0);
  arena.answer({4, 6}, {});
  arena.world.script.fill = [] { return std::vector<Wanted>{{0}, {1}}; };
  ASSERT_TRUE(arena.resize(10).ok());
  ASSERT_TRUE(arena.world.run(arena.world.scheduler->fill({})).ok());
  arena.expect_computed(1);
  EXPECT_EQ(arena.world.scheduler->counters().hits, 10u);
}

// Prefetches have leased slots and started reads. All of them end before any slot moves.
TEST(Arena, WhatWasReadAheadIsGivenUp) {
  ArenaWorld arena;
  arena.read_ahead();
  ASSERT_TRUE(arena.world.end_step(0).ok());
  arena.answer({0, 1}, {{1, 0}, {1, 3}, {1, 2}, {0, 0}});
  arena.world.settle();
  arena.world.flash.finish();  // into the only slot of site 0; the others land in staging
  arena.world.settle();
  ASSERT_TRUE(arena.world.residency.valid(0, 0));
  arena.world.script.look_ahead = {};
  ASSERT_TRUE(arena.resize(1).ok());
  EXPECT_EQ(arena.world.residency.slot(1, 5), 0u);
  arena.world.script.admit = {};
  arena.expect_computed(1);
}

TEST(Arena, EachUnitItsOwn) {
  ArenaWorld arena(2);
  for (uint32_t i = 0; i < 6; ++i)
    EXPECT_EQ(arena.world.residencies[1].slot(1, i), arena.world.residency.slot(1, i));
  arena.world.script.resize = [](uint64_t bytes, uint32_t* slots, tierd_victims_out* victims) {
    slots[0] = 0, slots[1] = static_cast<uint32_t>(bytes / kSlot);
    victims->n = 0;
    for (const uint32_t i : {0, 2, 3, 5}) {
      if (victims->n + slots[1] < 4) victims->item[victims->n++] = {1, i};
    }
    return 0;
  };
  arena.world.placement.place(1, {0, 0, 0, 1, 1, 1});
  ASSERT_TRUE(arena.world.drain().ok());
  ASSERT_TRUE(arena.world.run(arena.world.scheduler->resize({1 * kSlot, 2 * kSlot})).ok());
  EXPECT_EQ(arena.world.residencies[0].max_slots(1), 1u);
  EXPECT_EQ(arena.world.residencies[1].max_slots(1), 2u);
  EXPECT_THAT(arena.world.order, Contains("1 move 7-4").Times(1));
  EXPECT_THAT(arena.world.order, Contains("2 move 6-4 7-5").Times(1));
}

TEST(Arena, ACacheGetsAnotherSplitOfWhatItHas) {
  ArenaWorld arena;
  arena.answer({3, 2}, {{1, 0}, {1, 2}});
  ASSERT_TRUE(arena.world.end_step(0).ok());
  arena.expect_as_it_was();  // the cache did not ask for a split
  arena.world.script.resplit = 1;
  ASSERT_TRUE(arena.world.end_step(1).ok());
  EXPECT_EQ(arena.asked, 5u * kSlot);
  EXPECT_EQ(arena.most, (std::vector<uint32_t>{4, 6}));
  EXPECT_THAT(arena.world.order, ElementsAre("1 move 6-4 7-5", "1 use 0-3 4-6"));
  EXPECT_EQ(arena.world.residency.max_slots(0), 3u);
  EXPECT_EQ(arena.world.residency.max_slots(1), 2u);
  arena.world.script.resplit = 0;
  arena.expect_computed(2);

  // After a change of size, the cache splits the new size.
  arena.answer({0, 2}, {});
  ASSERT_TRUE(arena.resize(2).ok());
  arena.world.script.resplit = 1;
  ASSERT_TRUE(arena.world.end_step(2).ok());
  EXPECT_EQ(arena.asked, 2u * kSlot);
  arena.world.script.resplit = 0;
  arena.expect_computed(3);
}

TEST(Arena, NothingIsOnItsWayWhenItIsSplitAnew) {
  ArenaWorld arena;
  arena.read_ahead();
  arena.answer({2, 3}, {{1, 0}});
  arena.world.script.resplit = 1;
  ASSERT_TRUE(arena.world.end_step(0).ok());
  for (uint32_t i = 0; i < 4; ++i) EXPECT_FALSE(arena.world.residency.leased(0, i));
  EXPECT_EQ(arena.world.residency.max_slots(0), 2u);
  arena.world.script = {};
  arena.expect_computed(1);
}

TEST(Arena, WhoCannotChangeItsSizeIsNotAskedForAnotherSplit) {
  ScriptedWorld world({.neurons = {4}, .slots = {2}});
  world.script.resplit = 1;
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  ASSERT_TRUE(world.end_step(0).ok());
  EXPECT_THAT(world.order, ElementsAre());
}

TEST(Arena, EachUnitIsSplitAnewByItself) {
  ArenaWorld arena(2);
  int asked = 0;
  arena.world.script.resize = [&](uint64_t bytes, uint32_t* slots, tierd_victims_out* victims) {
    EXPECT_EQ(bytes, 5u * kSlot);
    ++asked;
    EXPECT_EQ(slots[1], 3u);
    slots[0] = 0, slots[1] = 3;
    victims->n = 1, victims->item[0] = {1, 0};
    return 0;
  };
  arena.world.placement.place(1, {0, 0, 0, 1, 1, 1});
  arena.world.script.resplit = 1;
  ASSERT_TRUE(arena.world.end_step(0).ok());
  EXPECT_EQ(asked, 2);
}

TEST(Arena, WhatTheAgentFailsToMoveIsGone) {
  ArenaWorld arena;
  arena.answer({0, 2}, {{1, 0}, {1, 2}});
  arena.world.compute.fail_next = true;
  const Status status = arena.resize(2);
  ASSERT_EQ(status.code(), Code::internal);
  EXPECT_THAT(status.error().line(), HasSubstr("agent 1: move failed"));
  EXPECT_EQ(arena.world.residency.valid_count(1), 0u);
  EXPECT_THAT(arena.world.script.calls, ElementsAre("shrunk 1:0,2", "shrunk 1:3,5"));
  arena.expect_computed(0);
}

TEST(Arena, WhoCannotIsNamed) {
  {
    ArenaWorld arena;
    arena.world.strategies.caches.front().table.resize = nullptr;
    const Status status = arena.resize(2);
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_EQ(status.error().line(), "cache 'script': cannot change its size during a run");
    EXPECT_FALSE(arena.world.scheduler->quarantined());
    arena.expect_as_it_was();
  }
  ScriptedWorld world({.neurons = {4}, .slots = {2}});
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  const Status status = world.scheduler->resizable(1);
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.error().line(), HasSubstr("agent 1: serves neither 'move' nor 'resize'"));
  EXPECT_THAT(world.order, ElementsAre());
}

struct InvalidResize {
  const char* name;
  std::vector<uint32_t> slots;
  std::vector<tierd_neuron> victims;
  const char* line;
};

TEST(Arena, AnAnswerThatMakesNoSenseChangesNothing) {
  const InvalidResize all[] = {
      {"more slots than neurons", {5, 0}, {}, "resize: 5 slots for site 0, expected at most 4"},
      {"more than there is", {0, 4}, {}, "resize: 16384 bytes, expected at most 12288"},
      {"nobody leaves", {0, 3}, {}, "resize: 4 neurons of site 1 stay, but it has 3 slots"},
      {"not here", {0, 3}, {{1, 1}}, "resize: victim 1 of edition 1 cannot be evicted"},
      {"no such neuron", {0, 3}, {{1, 6}}, "resize: victim 6 of edition 1 cannot be evicted"},
      {"no such edition", {0, 3}, {{7, 0}}, "resize: victim 0 of edition 7 cannot be evicted"},
      {"named twice", {0, 2}, {{1, 0}, {1, 0}}, "resize: victim 0 of edition 1 is named twice"},
  };
  for (const InvalidResize& answer : all) {
    SCOPED_TRACE(answer.name);
    ArenaWorld arena;
    arena.answer(answer.slots, answer.victims);
    const Status status = arena.resize(3);
    ASSERT_EQ(status.code(), Code::plugin_fault);
    EXPECT_EQ(status.error().line(), std::string("cache 'script': ") + answer.line);
    arena.expect_as_it_was();
    EXPECT_TRUE(arena.world.scheduler->quarantined());
    arena.world.heal();
    arena.expect_computed(0);
  }
  ArenaWorld arena;
  arena.world.script.resize = [](uint64_t, uint32_t* slots, tierd_victims_out* victims) {
    std::fill_n(slots, 2, 0u);
    victims->n = victims->cap + 1;
    return 0;
  };
  EXPECT_EQ(arena.resize(3).error().line(), "cache 'script': resize: 5 victims, expected at most 4");
  arena.expect_as_it_was();
  arena.world.heal();
  arena.world.script.resplit = 2;
  EXPECT_EQ(arena.world.end_step(0).error().line(), "cache 'script': resplit: 2, expected 0 or 1");
  EXPECT_TRUE(arena.world.scheduler->quarantined());
}

}  // namespace
}  // namespace tierd
