// One pass of one site: segments, reads and caches. Look-ahead is tested in scheduler_look_ahead_test.cc,
// faults in scheduler_read_fault_test.cc.
#include "core/kernel/pass/scheduler.h"

#include <gtest/gtest.h>

#include "core/strategy/strategy_set.h"
#include "tests/kernel/scripted_answers.h"
#include "tests/kernel/scripted_world.h"
#include "tests/plugins/choose.h"

namespace tierd {
namespace {

// A world with a built-in cache.
struct BuiltinWorld {
  BuiltinWorld(const WorldOptions& options, const std::string& cache)
      : world(options, [&](ScriptedWorld& w) {
          auto made = StrategySet::create(choose_all(cache), w.sites, {.seed = 1});
          EXPECT_TRUE(made.ok());
          set = std::move(*made);
          set->set_residencies(w.residencies);
          Strategies strategies = w.script.strategies();
          strategies.caches = set->strategies().caches;
          return strategies;
        }) {}
  std::unique_ptr<StrategySet> set;
  ScriptedWorld world;
};

TEST(Scheduler, SegmentsAroundAndNeuronsAsTheyArrive) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.reads(), "[0][1][2][3]");
  EXPECT_EQ(world.computed(0, 0), "B 0 1 2 3A");
  EXPECT_EQ(world.scheduler->counters().misses, 4u);
  EXPECT_EQ(world.scheduler->counters().streamed_bytes, 4u * (kSlot - 96));
  EXPECT_EQ(world.scheduler->counters().read_bytes, 4u * kSlot);
  world.expect_nothing_lost();
}

TEST(Scheduler, TheOrderOfArrivalIsTheDisks) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}});
  const std::vector<size_t> order = {2, 0, 1, 0};
  size_t next = 0;
  world.idle = [&] { world.flash.finish(order.at(next++)); };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.computed(0, 0), "B 2 0 3 1A");
  world.expect_nothing_lost();
}

TEST(Scheduler, WhatIsResidentIsOneMessage) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}});
  world.script.fill = [] { return std::vector<Wanted>{{0}}; };
  uint64_t landed = 0;
  ASSERT_TRUE(world.run(world.scheduler->fill([&](uint64_t bytes) { landed += bytes; })).ok());
  EXPECT_EQ(landed, 4u * kSlot);
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.computed(0, 0), "B0,1,2,3A");
  EXPECT_EQ(world.scheduler->counters().hits, 4u);
  EXPECT_EQ(world.scheduler->counters().resident_bytes, 4u * (kSlot - 96));
  EXPECT_EQ(world.flash.started.size(), 4u);
  world.expect_nothing_lost();
}

TEST(Scheduler, ResidentNeuronsDoNotWaitForTheOthers) {
  ScriptedWorld world({.neurons = {4}, .slots = {2}});
  world.script.fill = [] { return std::vector<Wanted>{{0, Neurons{1, 3}}}; };
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.computed(0, 0), "B1,3 0 2A");
  world.expect_nothing_lost();
}

TEST(Scheduler, OneReadBringsAsManyNeuronsAsABlockHolds) {
  ScriptedWorld world({.neurons = {5}, .slots = {0}, .neurons_per_block = 2});
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.reads(), "[0,1][2,3][4]");
  EXPECT_EQ(world.computed(0, 0), "B 0,1 2,3 4A");
  world.expect_nothing_lost();
}

TEST(Scheduler, AnEmptyActiveSetRunsItsSegments) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}});
  world.script.predict = predicts({{0, {}}});
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.computed(0, 0), "BA");
  EXPECT_EQ(world.reads(), "");
}

TEST(Scheduler, OneBlockOfStagingIsEnough) {
  ScriptedWorld world({.neurons = {6}, .slots = {0}, .blocks = 1});
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(world.flash.most_open, 1u);
  world.expect_nothing_lost();
}

TEST(Scheduler, KeepBypassAndRefuse) {
  ScriptedWorld world({.slots = {0, 2, 0}, .blocks = 8});
  world.script.admit = [](const tierd_set_view* missing, int priority, uint32_t free_slots, uint8_t* verdict,
                          tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i) {
      const bool prefetch = priority == TIERD_PRIORITY_PREFETCH;
      const uint8_t ahead[] = {TIERD_VERDICT_KEEP, TIERD_VERDICT_BYPASS, TIERD_VERDICT_REFUSE,
                               TIERD_VERDICT_REFUSE};
      const uint8_t now[] = {TIERD_VERDICT_BYPASS, TIERD_VERDICT_BYPASS, TIERD_VERDICT_KEEP,
                             TIERD_VERDICT_BYPASS};
      verdict[i] = prefetch ? ahead[missing->idx[i]] : now[missing->idx[i]];
    }
    EXPECT_EQ(free_slots, priority == TIERD_PRIORITY_PREFETCH ? 2u : 1u);
    return 0;
  };
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
  EXPECT_TRUE(world.residency.valid(1, 0));
  EXPECT_FALSE(world.residency.valid(1, 1));
  EXPECT_TRUE(world.residency.valid(1, 2));
  EXPECT_EQ(world.script.calls,
            (std::vector<std::string>{"touch 0:", "landed 1:0", "landed 1:2", "touch 1:0,1,2,3"}));
  world.expect_nothing_lost();
}

// A neuron of a wish is not evicted for another one of the same wish, though no pass uses it yet.
TEST(Scheduler, AWishKeepsWhatItNames) {
  BuiltinWorld lru({.neurons = {1, 4}, .slots = {0, 2}}, "lru");
  ScriptedWorld& world = lru.world;
  const auto resident = [&] {
    Neurons valid;
    for (uint32_t i = 0; i < 4; ++i) {
      if (world.residency.valid(1, i)) valid.push_back(i);
    }
    return valid;
  };
  const auto step = [&](uint32_t number, const Neurons& active) {
    world.script.look_ahead = [active](SiteId site) {
      return site == 0 ? std::vector<Ahead>{{1, 1, active}} : std::vector<Ahead>{};
    };
    world.script.predict = predicts({{0, {0}}, {1, active}});
    ASSERT_TRUE(world.pass(0, number).ok());
    ASSERT_TRUE(world.pass(1, number).ok());
    world.expect_whole(1, number, active);
    ASSERT_TRUE(world.end_step(number).ok());
  };
  step(0, {0, 1});
  EXPECT_EQ(resident(), (Neurons{0, 1}));
  step(1, {0, 1, 2, 3});  // both stay resident, the others are streamed
  EXPECT_EQ(resident(), (Neurons{0, 1}));
  EXPECT_EQ(world.scheduler->counters().evictions, 0u);
  step(2, {1, 2});
  EXPECT_EQ(resident(), (Neurons{1, 2}));  // 0 is in no wish
  world.expect_nothing_lost();
}

TEST(Scheduler, CachesHearOfSequences) {
  ScriptedWorld world({.units = 2});
  EXPECT_TRUE(world.scheduler->begin_sequence(5).ok());
  world.scheduler->end_sequence(5);
  EXPECT_EQ(world.script.calls, (std::vector<std::string>{"begin 5", "begin 5", "end 5", "end 5"}));
  EXPECT_TRUE(world.scheduler->take_fault().ok());
}

TEST(Scheduler, AFaultOfACacheEndsTheSequenceThatBegins) {
  ScriptedWorld world({});
  uint32_t told = 0;
  world.strategies.predictor.table.begin_sequence = [](void* self, uint64_t) {
    return ++*static_cast<uint32_t*>(self), int{TIERD_OK};
  };
  world.strategies.predictor.table.end_sequence = world.strategies.predictor.table.begin_sequence;
  world.strategies.predictor.self = &told;
  world.script.code["begin_sequence"] = TIERD_E_INTERNAL;
  EXPECT_EQ(world.scheduler->begin_sequence(5).error().line(), "cache 'script': begin_sequence: returned -4");
  EXPECT_EQ(told, 2u);  // of the begin and of the end
  EXPECT_EQ(world.script.calls, (std::vector<std::string>{"begin 5"}));
  EXPECT_TRUE(world.scheduler->quarantined());
  world.scheduler->end_sequence(5);
  EXPECT_EQ(world.script.calls, (std::vector<std::string>{"begin 5"}));
}

TEST(Scheduler, AFaultOfACacheAtTheEndOfASequenceIsToldOnce) {
  ScriptedWorld world({});
  world.script.code["end_sequence"] = TIERD_E_INTERNAL;
  EXPECT_TRUE(world.scheduler->begin_sequence(5).ok());
  world.scheduler->end_sequence(5);
  EXPECT_EQ(world.scheduler->take_fault().error().line(), "cache 'script': end_sequence: returned -4");
  EXPECT_TRUE(world.scheduler->take_fault().ok());
}

TEST(Scheduler, PrefillPassesByTheCaches) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}});
  world.script.admit = [](const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out*) {
    ADD_FAILURE() << "nobody asked";
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0, {}, true).ok());
  EXPECT_EQ(world.residency.valid_count(0), 0u);
  EXPECT_TRUE(world.script.calls.empty());
}

TEST(Scheduler, LruDropsWhatWasUsedLongestAgoAndNothingInUse) {
  BuiltinWorld lru({.neurons = {5}, .slots = {2}}, "lru");
  ScriptedWorld& world = lru.world;
  uint32_t step = 0;
  const auto pass = [&](Neurons active) {
    world.script.predict = predicts({{0, active}});
    ASSERT_TRUE(world.pass(0, step).ok());
    world.expect_whole(0, step, active);
    ++step;
  };
  const auto resident = [&] {
    Neurons valid;
    for (uint32_t i = 0; i < 5; ++i) {
      if (world.residency.valid(0, i)) valid.push_back(i);
    }
    return valid;
  };
  pass({0, 1});
  EXPECT_EQ(resident(), (Neurons{0, 1}));
  pass({0});
  pass({2});  // 1 was used longest ago
  EXPECT_EQ(resident(), (Neurons{0, 2}));
  pass({0, 2, 4});  // both are in use: 4 is streamed
  EXPECT_EQ(resident(), (Neurons{0, 2}));
  pass({2, 3});  // only 0 may be evicted
  EXPECT_EQ(resident(), (Neurons{2, 3}));
  pass({0, 1, 4});
  EXPECT_EQ(world.residency.valid_count(0), 2u);
  EXPECT_EQ(world.scheduler->counters().evictions, 1u + 1u + 2u);
  world.expect_nothing_lost();
}

TEST(Scheduler, TiedEmbeddingAndHeadShareTheirNeurons) {
  BuiltinWorld lru({.slots = {0, 3}, .tied = true}, "lru");
  ScriptedWorld& world = lru.world;
  const EditionId shared = world.sites.best(2);
  ASSERT_EQ(world.sites.best(0), shared);
  ASSERT_TRUE(world.pass(0, 0, {1, 3}).ok());
  world.expect_whole(0, 0, {1, 3});
  EXPECT_TRUE(world.residency.valid(shared, 1));
  EXPECT_TRUE(world.residency.valid(shared, 3));
  EXPECT_EQ(world.reads(), "[9][11]");
  ASSERT_TRUE(world.pass(2, 0).ok());
  EXPECT_EQ(world.computed(2, 0), "B1,3 0 2A");
  EXPECT_EQ(world.scheduler->counters().hits, 2u);
  EXPECT_EQ(world.residency.valid_count(shared), 3u);
  ASSERT_TRUE(world.pass(0, 1, {2}).ok());
  world.expect_whole(0, 1, {2});
  world.expect_nothing_lost();
}

TEST(Scheduler, WhoSharesAnEditionClaimsWhatWasAdmittedForTheOther) {
  // The head's neurons are admitted ahead, but only two messages are sent. The embedding needs the last
  // neuron.
  ScriptedWorld world({.slots = {0, 4}, .tied = true, .messages = 2});
  world.script.admit = verdicts(
      {{0, TIERD_VERDICT_KEEP}, {1, TIERD_VERDICT_KEEP}, {2, TIERD_VERDICT_KEEP}, {3, TIERD_VERDICT_KEEP}});
  world.script.look_ahead = [](SiteId site) {
    return site == 1 ? std::vector<Ahead>{{2, 4}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{1, {}}});
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[8][9]");
  ASSERT_TRUE(world.end_step(0).ok());
  ASSERT_TRUE(world.pass(0, 1, {1, 3}).ok());  // 1 is in flight, 3 only admitted
  world.expect_whole(0, 1, {1, 3});
  ASSERT_TRUE(world.pass(2, 1).ok());
  world.expect_whole(2, 1, {0, 1, 2, 3});
  EXPECT_EQ(world.flash.started.size(), 4u);
  world.expect_nothing_lost();
}

TEST(Scheduler, WhatTheOtherSiteHasFetchedIsNotReadAgain) {
  // The head's wish is to be streamed and waits for room. Meanwhile the embedding fetches neuron 3 and keeps
  // it. It is computed once, from its slot.
  ScriptedWorld world({.neurons = {4, 1, 4}, .slots = {0, 4}, .tied = true, .blocks = 2});
  world.script.admit = [](const tierd_set_view* missing, int priority, uint32_t, uint8_t* verdict,
                          tierd_victims_out*) {
    std::fill_n(verdict, missing->n,
                uint8_t(priority == TIERD_PRIORITY_DEMAND ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS));
    return 0;
  };
  world.script.look_ahead = [](SiteId site) {
    return site == 1 ? std::vector<Ahead>{{2, 4}} : std::vector<Ahead>{};
  };
  world.script.predict = predicts({{1, {}}});
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.settle();
  EXPECT_EQ(world.reads(), "[5]");
  ASSERT_TRUE(world.pass(0, 1, {3}).ok());
  ASSERT_TRUE(world.pass(2, 1).ok());
  world.expect_whole(2, 1, {0, 1, 2, 3});
  EXPECT_EQ(world.flash.started.size(), 4u);
  world.expect_nothing_lost();
}

TEST(Scheduler, ManyMoreNeuronsThanMessages) {
  ScriptedWorld world({.neurons = {50, 50}, .slots = {10, 0}, .blocks = 20, .messages = 3, .credits = 2});
  world.script.admit = [](const tierd_set_view* missing, int, uint32_t free_slots, uint8_t* verdict,
                          tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i) {
      verdict[i] = i % 3 == 0 && free_slots > 0 ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
      if (verdict[i] == TIERD_VERDICT_KEEP) --free_slots;
    }
    return 0;
  };
  world.script.look_ahead = [](SiteId site) { return std::vector<Ahead>{{1 - site, 1}}; };
  Neurons all(50);
  for (uint32_t i = 0; i < 50; ++i) all[i] = i;
  for (uint32_t step = 0; step < 5; ++step) {
    for (SiteId site = 0; site < 2; ++site) {
      ASSERT_TRUE(world.pass(site, step).ok());
      world.expect_whole(site, step, all);
    }
    ASSERT_TRUE(world.end_step(step).ok());
  }
  world.expect_nothing_lost();
}

}  // namespace
}  // namespace tierd
