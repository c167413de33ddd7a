// Faults of reads: failed reads, interruptions, and random sequences of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/kernel/pass/scheduler.h"
#include "core/strategy/strategy_set.h"
#include "tests/kernel/scripted_world.h"
#include "tests/plugins/choose.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(SchedulerFaults, AFailedDemandIsTriedAgain) {
  ScriptedWorld world({.neurons = {3}, .slots = {1}});
  world.script.admit = keep_what_fits();
  int failures = 2;
  world.idle = [&] { world.flash.finish(0, failures-- > 0 ? DoneStatus::io_error : DoneStatus::ok); };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2});
  EXPECT_EQ(world.flash.started.size(), 5u);
  EXPECT_EQ(world.scheduler->counters().retries, 2u);
  EXPECT_EQ(world.scheduler->counters().prefetch_failed, 0u);
  world.expect_nothing_lost();
}

// No run is posted behind a read, even by the unit's own agent, because a failed read is tried again.
TEST(SchedulerFaults, WhatAUnitReadsByItselfIsTriedAgain) {
  for (const bool bundles : {false, true}) {
    const uint32_t n = bundles ? kRun : 4;
    ScriptedWorld world({.neurons = {n},
                         .slots = {0},
                         .neurons_per_block = n,
                         .bundles = bundles,
                         .below = {{0}},
                         .moves_itself = true,
                         .direct = true,
                         .reads_itself = true});
    uint32_t failures = 2;
    world.idle = [&] {
      ASSERT_EQ(world.mover.open.size(), 1u);
      EXPECT_EQ(world.mover.open.front().message.op, Op::read);
      world.mover.finish(0, failures != 0 ? DoneStatus::io_error : DoneStatus::ok);
      failures -= failures != 0 ? 1 : 0;
    };
    ASSERT_TRUE(world.pass(0, 0).ok());
    Neurons all(n);
    std::iota(all.begin(), all.end(), 0U);
    world.expect_whole(0, 0, all);
    EXPECT_EQ(world.mover.started.size(), 3u);
    EXPECT_TRUE(world.flash.started.empty()) << "nothing comes by way of the memory below";
    world.expect_nothing_lost();
  }
}

TEST(SchedulerFaults, WhatFailsForGoodNamesTheExtent) {
  struct Case {
    DoneStatus status;
    uint16_t error;
    Code code;
    const char* detail;
  };
  for (const Case& c :
       {Case{DoneStatus::io_error, 5, Code::io_error, "read failed after 3 attempts: Input/output error"},
        Case{DoneStatus::corrupt, 0, Code::corrupt, "the checksum does not match"},
        Case{DoneStatus::internal, 0, Code::io_error, "read failed after 3 attempts: status"}}) {
    for (const bool keep : {false, true}) {
      ScriptedWorld world({.neurons = {2, 4}, .slots = {0, keep ? 4u : 0u}, .neurons_per_block = 4});
      if (keep) world.script.admit = keep_what_fits();
      world.idle = [&] { world.flash.finish(0, c.status, 3, c.error); };
      const Status status = world.pass(1, 0);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.code(), c.code);
      EXPECT_THAT(status.error().line(), HasSubstr("weights.bin: extent 5: "));
      EXPECT_THAT(status.error().line(), HasSubstr(c.detail));
      EXPECT_EQ(world.flash.started.size(), 3u);
      EXPECT_TRUE(world.flash.open.empty());
      EXPECT_EQ(world.dispatcher.in_flight(), 0u);
      ASSERT_TRUE(world.end_step(0).ok());
      if (keep) {
        EXPECT_EQ(world.script.calls, (std::vector<std::string>{"failed 1:0,1,2,3"}));
      }
      // The disk works again: the next step succeeds.
      world.idle = [&] { world.flash.finish(); };
      ASSERT_TRUE(world.pass(1, 1).ok());
      world.expect_whole(1, 1, {0, 1, 2, 3});
      world.expect_nothing_lost();
    }
  }
}

TEST(SchedulerFaults, AnErrorLeavesNothingOfThePassInFlight) {
  for (const uint32_t slots : {0u, 2u, 4u}) {
    ScriptedWorld world({.neurons = {4}, .slots = {slots}, .attempts = 1});
    world.script.admit = keep_what_fits();
    bool first = true;
    world.idle = [&] {
      // neuron 2 fails; the others complete later
      world.flash.finish(first ? 2 : 0, first ? DoneStatus::corrupt : DoneStatus::ok);
      first = false;
    };
    const Status status = world.pass(0, 0);
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_THAT(status.error().line(), HasSubstr("extent 2"));
    EXPECT_TRUE(world.flash.open.empty());
    ASSERT_TRUE(world.end_step(0).ok());
    ASSERT_TRUE(world.pass(0, 1).ok());
    world.expect_whole(0, 1, {0, 1, 2, 3});
    world.expect_nothing_lost();
  }
}

TEST(SchedulerFaults, AFailedPrefetchIsOnlyACounter) {
  for (const uint32_t slots : {0u, 4u}) {
    ScriptedWorld world({.neurons = {1, 4}, .slots = {0, slots}, .attempts = 1});
    world.script.admit = keep_what_fits();
    world.script.look_ahead = [](SiteId site) {
      return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
    };
    ASSERT_TRUE(world.pass(0, 0).ok());
    world.settle();
    ASSERT_EQ(world.flash.open.size(), 4u);
    world.flash.finish(1, DoneStatus::io_error);
    world.flash.finish(1, DoneStatus::corrupt);
    world.settle();
    EXPECT_EQ(world.scheduler->counters().prefetch_failed, 2u);
    ASSERT_TRUE(world.pass(1, 0).ok());
    world.expect_whole(1, 0, {0, 1, 2, 3});
    EXPECT_EQ(world.scheduler->counters().misses, 1u + 2u);
    EXPECT_EQ(world.scheduler->counters().retries, 0u);
    world.expect_nothing_lost();
  }
}

TEST(SchedulerFaults, APrefetchThatSomebodyWaitsForIsTriedAgain) {
  ScriptedWorld world({.neurons = {1, 2}, .slots = {0, 0}});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  const std::vector<DoneStatus> ends = {DoneStatus::cancelled, DoneStatus::io_error, DoneStatus::ok,
                                        DoneStatus::ok};
  size_t next = 0;
  world.idle = [&] { world.flash.finish(0, ends.at(next++)); };
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.expect_whole(1, 0, {0, 1});
  EXPECT_EQ(world.scheduler->counters().retries, 1u);  // being dropped is not a failure
  for (size_t i = 3; i < world.flash.started.size(); ++i) {
    EXPECT_EQ(world.flash.started[i].message.priority, Priority::demand);
  }
  world.expect_nothing_lost();
}

TEST(SchedulerFaults, StopEndsAPass) {
  for (const uint32_t slots : {0u, 3u}) {
    ScriptedWorld world({.neurons = {4, 4}, .slots = {slots, 0}, .blocks = 2});
    world.script.admit = keep_what_fits();
    int calls = 0;
    world.idle = [&] {
      if (++calls == 2) world.dispatcher.waiter().stop();
      world.flash.finish();
    };
    const Status status = world.pass(0, 0);
    EXPECT_EQ(status.code(), Code::cancelled);
    EXPECT_THAT(status.error().line(), HasSubstr("site 0: interrupted"));
    EXPECT_TRUE(world.flash.open.empty());
    ASSERT_TRUE(world.end_step(0).ok());
    world.dispatcher.waiter().clear_stop();
    for (SiteId site : {0u, 1u}) {
      ASSERT_TRUE(world.pass(site, 1).ok());
      world.expect_whole(site, 1, {0, 1, 2, 3});
    }
    world.expect_nothing_lost();
  }
}

TEST(SchedulerFaults, AFailedComputationEndsThePass) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}});
  world.compute.fail_next = true;
  const Status status = world.pass(0, 0);
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_THAT(status.error().line(), HasSubstr("site 0: compute failed"));
  EXPECT_EQ(world.dispatcher.in_flight(), 0u);
  ASSERT_TRUE(world.pass(0, 1).ok());
  world.expect_whole(0, 1, {0, 1, 2, 3});
  world.expect_nothing_lost();
}

TEST(SchedulerFaults, DrainEndsWhatIsUnderWay) {
  for (const uint32_t slots : {0u, 4u}) {
    ScriptedWorld world({.slots = {0, slots, slots}, .blocks = 4, .messages = 4});
    world.script.admit = keep_what_fits();
    world.script.look_ahead = [](SiteId site) {
      return site == 0 ? std::vector<Ahead>{{1, 1}, {2, 2}, {0, 3}} : std::vector<Ahead>{};
    };
    ASSERT_TRUE(world.pass(0, 0).ok());
    world.settle();
    EXPECT_FALSE(world.flash.open.empty());
    world.expect_nothing_lost();
    // Later wishes prefetch again.
    const size_t before = world.flash.started.size();
    ASSERT_TRUE(world.pass(0, 1).ok());
    world.settle();
    EXPECT_GT(world.flash.started.size(), before + 4);
    world.expect_nothing_lost();
  }
}

// ---- fill

TEST(SchedulerFaults, FillFailsWithTheExtentAndKeepsTheRestWhole) {
  ScriptedWorld world({.neurons = {4, 4}, .slots = {4, 4}, .messages = 2});
  world.script.fill = [] { return std::vector<Wanted>{{0}, {1}}; };
  int reads = 0;
  world.idle = [&] { world.flash.finish(0, ++reads >= 3 ? DoneStatus::io_error : DoneStatus::ok); };
  const Status status = world.run(world.scheduler->fill({}));
  EXPECT_EQ(status.code(), Code::io_error);
  EXPECT_THAT(status.error().line(), HasSubstr("weights.bin: extent "));
  world.expect_nothing_lost();
  EXPECT_EQ(world.residency.valid_count(0), 2u);
  world.idle = [&] { world.flash.finish(); };
  ASSERT_TRUE(world.run(world.scheduler->fill({})).ok());  // resident neurons are left as they are
  EXPECT_EQ(world.residency.valid_count(0) + world.residency.valid_count(1), 8u);
  world.expect_nothing_lost();
}

TEST(SchedulerFaults, StopEndsFill) {
  ScriptedWorld world({.neurons = {8}, .slots = {8}, .messages = 2});
  world.script.fill = [] { return std::vector<Wanted>{{0}}; };
  int reads = 0;
  world.idle = [&] {
    if (++reads == 2) world.dispatcher.waiter().stop();
    world.flash.finish();
  };
  EXPECT_EQ(world.run(world.scheduler->fill({})).code(), Code::cancelled);
  EXPECT_LT(world.flash.started.size(), 8u);
  world.expect_nothing_lost();
}

// ---- everything at random

// Seeded steps over tied sites with random caches, active sets, look-ahead, orders of arrival and faults.
// Checks the invariants after each pass and at the end that nothing is lost.
void storm(uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  WorldOptions options;
  options.neurons = {6, 5, 1, 8, 6};
  options.tied = true;
  options.editions = 1 + random.below(3);
  options.slots.clear();
  for (const uint32_t n : {5u, 1u, 8u, 6u}) {
    for (uint32_t level = 0; level < options.editions; ++level) options.slots.push_back(random.below(n + 1));
  }
  options.blocks = 1 + random.below(6);
  options.neurons_per_block = 1 + random.below(3);
  options.messages = 3 + random.below(20);
  options.credits = 1 + random.below(8);
  options.attempts = 1 + random.below(3);
  if (random.below(2) == 0) options.seed = seed;
  const char* const caches[] = {"none", "pinned", "lru", "script"};
  const std::string cache = caches[random.below(4)];

  std::unique_ptr<StrategySet> set;
  ScriptedWorld world(options, [&](ScriptedWorld& w) {
    auto made = StrategySet::create(choose_all(cache == "script" ? "lru" : cache), w.sites, {.seed = seed});
    EXPECT_TRUE(made.ok());
    set = std::move(*made);
    EXPECT_TRUE(set->share({1 << 20}).ok());
    Strategies strategies = w.script.strategies();
    if (cache != "script") strategies.caches = set->strategies().caches;
    return strategies;
  });
  set->set_residencies(world.residencies);

  const auto some_of = [&](uint32_t n) {
    Neurons some;
    const uint32_t part = random.below(4);
    for (uint32_t i = 0; i < n; ++i) {
      if (random.below(3) < part) some.push_back(i);
    }
    return some;
  };
  world.script.choose = [&](const tierd_set_view* of, uint8_t* level) {
    for (uint32_t i = 0; i < of->n; ++i) level[i] = static_cast<uint8_t>(random.below(options.editions));
    return 0;
  };
  std::map<SiteId, Neurons> active;
  world.script.predict = [&](SiteId site, tierd_set_out* out) {
    active[site] = some_of(world.sites[site].n);
    out->n = static_cast<uint32_t>(active[site].size());
    std::copy(active[site].begin(), active[site].end(), out->idx);
    return 0;
  };
  world.script.look_ahead = [&](SiteId site) {
    std::vector<Ahead> wishes;
    for (uint32_t d = 1; d <= 6; ++d) {
      if (random.below(3) == 0) continue;
      const SiteId to = (site + d) % 5;
      wishes.push_back(
          {to, d, random.below(2) == 0 ? std::nullopt : std::optional(some_of(world.sites[to].n))});
    }
    return wishes;
  };
  world.script.admit = [&](const tierd_set_view* missing, int priority, uint32_t free_slots, uint8_t* verdict,
                           tierd_victims_out* victims) {
    const EditionId edition = missing->edition;
    Neurons evictable;
    for (uint32_t i = 0; i < world.sites.editions[edition].n; ++i) {
      if (world.residency.valid(edition, i) && !world.residency.pinned(edition, i)) evictable.push_back(i);
    }
    for (uint32_t i = 0; i < missing->n; ++i) {
      verdict[i] = static_cast<uint8_t>(random.below(priority == TIERD_PRIORITY_DEMAND ? 2 : 3));
      if (verdict[i] != TIERD_VERDICT_KEEP) continue;
      if (free_slots > 0) {
        --free_slots;
      } else if (!evictable.empty() && victims->n < victims->cap) {
        victims->item[victims->n++] = {edition, evictable.back()};
        evictable.pop_back();
      } else {
        verdict[i] = TIERD_VERDICT_BYPASS;
      }
    }
    return 0;
  };
  world.script.fill = [&] { return std::vector<Wanted>{}; };
  uint32_t fault_every = 0;
  world.idle = [&] {
    if (random.below(4) == 0) world.compute.hold = !world.compute.hold;
    if (world.flash.open.empty()) {
      world.compute.hold = false;
      return;
    }
    const size_t i = random.below(static_cast<uint32_t>(world.flash.open.size()));
    DoneStatus status = DoneStatus::ok;
    if (fault_every != 0 && random.below(fault_every) == 0) {
      status = random.below(2) == 0 ? DoneStatus::io_error : DoneStatus::corrupt;
    }
    if (world.flash.was_cancelled(world.flash.open[i]) && random.below(2) == 0)
      status = DoneStatus::cancelled;
    world.flash.finish(i, status);
    if (fault_every != 0 && random.below(200) == 0) world.dispatcher.waiter().stop();
  };

  // This world has fewer slots than the cache was made for, which may want to fill more than fit.
  if (cache == "pinned" && !world.run(world.scheduler->fill({})).ok()) {
    world.strategies.caches = set->strategies().caches;
  }
  uint32_t failed = 0;
  for (uint32_t step = 0; step < 60; ++step) {
    fault_every = step % 20 < 10 ? 0 : 2 + random.below(30);
    const bool bypass = random.below(5) == 0;
    for (SiteId site = 0; site < 5; ++site) {
      const Neurons given = some_of(world.sites[0].n);
      const Status status = world.pass(site, step, given, bypass);
      if (!status.ok()) {
        EXPECT_TRUE(fault_every != 0) << status.error().line();
        EXPECT_NE(status.code(), Code::plugin_fault) << status.error().line();
        ++failed;
        break;
      }
      world.expect_whole(site, step, site == 0 ? given : active[site]);
      for (const EditionId edition : world.sites[site].editions) {
        for (uint32_t i = 0; i < world.sites[site].n; ++i)
          ASSERT_FALSE(world.residency.pinned(edition, i)) << "between passes nothing is in use";
      }
      if (testing::Test::HasFailure()) return;
    }
    ASSERT_TRUE(world.end_step(step).ok());
    if (step % 10 == 9) world.settle();  // a fault of these steps is not reported in the next
    if (random.below(10) == 0) world.expect_nothing_lost();
    world.dispatcher.waiter().clear_stop();
    if (random.below(4) == 0) world.compute.log.clear();
  }
  fault_every = 0;
  world.expect_nothing_lost();

  // No block and no credit is lost: the greatest possible number of reads is in flight at once.
  world.script.predict = nullptr;
  world.script.choose = nullptr;
  world.script.look_ahead = nullptr;
  world.flash.most_open = 0;
  world.compute.hold = false;
  const uint32_t neurons = options.neurons[3] - world.residency.valid_count(world.sites.best(3));
  const uint32_t reads = (neurons + options.neurons_per_block - 1) / options.neurons_per_block;
  world.idle = [&] {
    world.settle();
    if (!world.flash.open.empty()) world.flash.finish();
  };
  ASSERT_TRUE(world.pass(3, 1000, {}, true).ok());
  EXPECT_EQ(world.flash.most_open, std::min({options.blocks, options.credits, options.messages, reads}));
  world.expect_nothing_lost();
}

TEST(SchedulerStorm, NothingIsLostWhateverHappens) {
  for (uint64_t seed = 1; seed <= (kSanitized ? 40 : 150); ++seed) {
    storm(seed);
    if (HasFailure()) {
      std::printf("failing seed: %llu\n", static_cast<unsigned long long>(seed));
      return;
    }
  }
}

}  // namespace
}  // namespace tierd
