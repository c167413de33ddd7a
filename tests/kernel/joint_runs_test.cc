// Consecutive passes whose neurons are all resident, and which no predictor observes, become one run. Other
// passes are computed one by one, and nothing else differs.
#include "core/kernel/pass/joint_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/agent/joint_run.h"
#include "core/base/random.h"
#include "tests/kernel/scripted_answers.h"
#include "tests/kernel/scripted_world.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::ElementsAre;

// Returns `n` sites of three neurons, all resident except those of the sites in `away`.
WorldOptions resident(uint32_t n, const std::vector<SiteId>& away = {}) {
  WorldOptions options;
  options.neurons.assign(n, 3);
  options.slots.assign(n, 3);
  options.neurons_per_block = 3;
  for (const SiteId site : away) options.slots[site] = 0;
  options.joint_runs = true;
  return options;
}

struct JointWorld : ScriptedWorld {
  explicit JointWorld(const WorldOptions& options) : ScriptedWorld(options) {
    strategies.caches.front().table.expire = nullptr;
    script.admit = keep_what_fits();
    script.fill = [this] {
      std::vector<Wanted> wanted;
      for (EditionId e = 0; e < sites.editions.size(); ++e) {
        Neurons neurons = {0, 1, 2};
        neurons.resize(residency.max_slots(e));
        wanted.push_back({e, neurons});
      }
      return wanted;
    };
    EXPECT_TRUE(run(scheduler->fill({})).ok());
  }

  // Runs all passes of a step; stops at the first error.
  Status step(uint32_t number) {
    for (SiteId site = 0; site < sites.size(); ++site) {
      Status status = pass(site, number);
      if (!status.ok()) {
        EXPECT_TRUE(end_step(number).ok());
        return status;
      }
    }
    return end_step(number);
  }
};

TEST(JointRuns, SitesThatFollowEachOtherAreOneMessage) {
  JointWorld world(resident(5));
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_THAT(world.order, ElementsAre("1 compute 0,1,2 B A", "1 compute 0,1,2 B A", "1 compute 0,1,2 B A",
                                       "1 compute 0,1,2 B A", "1 compute 0,1,2 B A"));
  for (SiteId site = 0; site < 5; ++site) EXPECT_EQ(world.compute.log[site].site, site);
  EXPECT_EQ(world.compute.runs, 2u) << "the last one's results are given to the caller";
  EXPECT_EQ(world.scheduler->counters().hits, 15u);
  world.expect_nothing_lost();
}

TEST(JointRuns, AUnitThatDoesNotTakeThemGetsOneSiteAtATime) {
  WorldOptions options = resident(5);
  options.joint_runs = false;
  JointWorld world(options);
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(world.compute.runs, 5u);
}

TEST(JointRuns, OneIsNotLongerThanItMayBe) {
  JointWorld world(resident(2 * JointRuns::kMostSites + 2));
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(world.compute.runs, 4u) << "two full ones, one of one site, the last site";
  EXPECT_EQ(world.compute.log.size(), world.sites.size());
  world.expect_nothing_lost();
}

TEST(JointRuns, APassDoesNotWaitForItsRunAndTheStepDoes) {
  JointWorld world(resident(4));
  world.compute.hold = true;
  for (SiteId site = 0; site < 3; ++site) ASSERT_TRUE(world.pass(site, 0).ok());
  EXPECT_EQ(world.compute.runs, 0u);
  EXPECT_TRUE(world.residency.pinned(0, 0)) << "it is computed from, later";
  int idle = 0;
  world.idle = [&] {
    ++idle;
    world.compute.hold = false;
  };
  ASSERT_TRUE(world.end_step(0).ok());
  EXPECT_EQ(idle, 1) << "the end of the step waits";
  EXPECT_EQ(world.compute.runs, 1u);
  EXPECT_FALSE(world.residency.pinned(0, 0));
  world.expect_nothing_lost();
}

TEST(JointRuns, TheUnitComputesWhileTheNextPassesAreMade) {
  JointWorld world(resident(JointRuns::kMostSites + 3));
  for (SiteId site = 0; site <= JointRuns::kMostSites; ++site) ASSERT_TRUE(world.pass(site, 0).ok());
  EXPECT_EQ(world.compute.runs, 1u) << "the first was sent before the step has ended";
  ASSERT_TRUE(world.end_step(0).ok());
  world.expect_nothing_lost();
}

TEST(JointRuns, WhatIsNotInMemoryIsComputedByItself) {
  JointWorld world(resident(6, {2}));
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(world.computed(2, 0), "B 0,1,2A");
  std::vector<SiteId> order;
  for (const Computed& c : world.compute.log) {
    if (order.empty() || order.back() != c.site) order.push_back(c.site);
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(world.compute.runs, 1u + 2u + 1u + 1u);
  world.expect_nothing_lost();
}

TEST(JointRuns, WhatIsNotWholeIsComputedByItself) {
  JointWorld world(resident(4));
  world.script.predict = predicts({{1, {0, 2}}});
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(world.computed(1, 0), "B0,2A");
  EXPECT_EQ(world.compute.runs, 4u);
}

TEST(JointRuns, WhoLooksAtActivationsSeesThemAtOnce) {
  WorldOptions options = resident(4);
  options.reads_x = true;
  JointWorld world(options);
  size_t asked = 0;
  world.script.sees = [&](SiteId site, const tierd_rows_view* rows) {
    ++asked;
    EXPECT_EQ(rows->x[1], input_value(site, 0, 1));
  };
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(asked, 4u);
  EXPECT_EQ(world.compute.runs, 8u) << "each segment before goes alone";
}

// Neurons in use cannot be evicted, so a cache that evicts after each pass prevents joint runs.
TEST(JointRuns, ACacheThatDropsBehindAPassIsWaitedFor) {
  JointWorld world(resident(4));
  world.strategies.caches.front().table.expire = Script().strategies().caches.front().table.expire;
  world.script.expire = [&](EditionId edition, tierd_victims_out* out) {
    out->item[0] = {edition, 1};
    out->n = world.residency.valid(edition, 1) ? 1 : 0;
  };
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(world.compute.runs, 4u);
  world.expect_nothing_lost();
}

TEST(JointRuns, PromptsAreComputedSiteBySite) {
  JointWorld world(resident(4));
  for (SiteId site = 0; site < 4; ++site) ASSERT_TRUE(world.pass(site, 0, {}, true).ok());
  EXPECT_EQ(world.compute.runs, 4u);
}

// The site's input is the output of the segment after the previous site, as with a model's `o` and `down`.
TEST(JointRuns, ASiteWithoutASegmentBeforeJoinsAlso) {
  WorldOptions options = resident(4);
  options.flows.resize(4);
  options.flows[1].before = options.flows[2].before = false;
  JointWorld world(options);
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(world.compute.runs, 2u);
  options.reads_x = true;
  JointWorld looked_at(options);
  size_t asked = 0;
  looked_at.script.sees = [&](SiteId, const tierd_rows_view* rows) { asked += rows->x != nullptr ? 1 : 0; };
  ASSERT_TRUE(looked_at.step(0).ok());
  EXPECT_EQ(asked, 4u);
  EXPECT_EQ(looked_at.compute.runs, 6u);
}

TEST(JointRuns, SumsBeginAtZero) {
  WorldOptions options = resident(3);
  options.bundles = true;
  JointWorld world(options);
  ASSERT_TRUE(world.step(0).ok());
  EXPECT_EQ(world.compute.runs, 2u);
  for (const Computed& c : world.compute.log) EXPECT_TRUE(c.partial);
}

TEST(JointRuns, TheEndOfTheStepSaysWhatHasFailed) {
  JointWorld world(resident(4));
  for (SiteId site = 0; site < 3; ++site) ASSERT_TRUE(world.pass(site, 0).ok());
  world.compute.fail_next = true;
  world.compute.first_bad = 1;
  EXPECT_EQ(world.end_step(0).error().line(), "site 1: compute failed: internal");
  world.compute.fail_next = true;
  world.compute.first_bad = 3;
  for (SiteId site = 0; site < 3; ++site) ASSERT_TRUE(world.pass(site, 1).ok());
  EXPECT_EQ(world.end_step(1).error().line(), "one of site 0 to site 2: compute failed: internal");
  EXPECT_TRUE(world.step(2).ok()) << "it is told once";
  world.expect_nothing_lost();
}

TEST(JointRuns, OrALaterPassSaysIt) {
  JointWorld world(resident(6, {3}));
  for (SiteId site = 0; site < 3; ++site) ASSERT_TRUE(world.pass(site, 0).ok());
  world.compute.fail_next = true;
  ASSERT_TRUE(world.pass(3, 0).ok()) << "its own run is well";
  EXPECT_EQ(world.pass(4, 0).error().line(), "site 0: compute failed: internal");
  EXPECT_TRUE(world.end_step(0).ok());
  world.expect_nothing_lost();
}

TEST(JointRuns, AStepThatIsGivenUpComputesNothingMore) {
  JointWorld world(resident(6, {3}));
  world.idle = [&] {
    if (!world.flash.open.empty()) world.flash.finish(0, DoneStatus::io_error);
  };
  for (SiteId site = 0; site < 3; ++site) ASSERT_TRUE(world.pass(site, 0).ok());
  EXPECT_EQ(world.pass(3, 0).code(), Code::io_error);
  EXPECT_TRUE(world.end_step(0).ok());
  world.script.code["touch"] = -1;
  const size_t runs = world.compute.runs;
  EXPECT_EQ(world.pass(0, 1).code(), Code::plugin_fault);
  EXPECT_FALSE(world.residency.pinned(0, 0));
  EXPECT_EQ(world.end_step(1).code(), Code::plugin_fault) << "the cache is not asked any more";
  EXPECT_EQ(world.compute.runs, runs);
  world.script.code.clear();
  world.heal();
  world.expect_nothing_lost();
}

TEST(JointRuns, AnAgentThatIsNotThereIsNamed) {
  JointWorld world(resident(4));
  world.mortals[0].dies_at = 1;
  const Status status = world.step(0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().line(), "agent 1 (recording compute): is lost");
  world.expect_nothing_lost();
}

// The results depend neither on which sites are computed together nor on the order of completions.
TEST(JointRuns, AnyHistoryComputesTheSame) {
  for (uint64_t seed = 1; seed <= (kSanitized ? 20 : 100); ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::string> computed[2];
    for (const bool joint : {false, true}) {
      Random random(seed);
      WorldOptions options = resident(4 + random.below(20));
      for (uint32_t& slots : options.slots) slots = random.below(3) == 0 ? random.below(3) : 3;
      options.joint_runs = joint;
      options.messages = 4 + random.below(8);
      options.credits = 2 + random.below(3);
      options.bundles = random.below(2) == 0;
      options.rows = 1 + random.below(3);
      if (random.below(2) == 0) options.seed = seed;
      JointWorld world(options);
      world.script.look_ahead = [&](SiteId site) {
        return std::vector<Ahead>{{(site + 1) % static_cast<SiteId>(world.sites.size()), 1}};
      };
      const uint32_t sparse = random.below(4);
      world.script.predict = predicts({{sparse, {1}}});
      for (uint32_t step = 0; step < 3; ++step) ASSERT_TRUE(world.step(step).ok());
      for (uint32_t step = 0; step < 3; ++step) {
        for (SiteId site = 0; site < world.sites.size(); ++site) {
          const Neurons neurons = site == sparse ? Neurons{1} : Neurons{0, 1, 2};
          world.expect_whole(site, step, neurons);
          computed[joint ? 1 : 0].push_back(world.computed(site, step));
        }
      }
      world.expect_nothing_lost();
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(computed[0].size(), computed[1].size());
  }
}

TEST(JointRun, EachSiteHasItsUnitsAndTheLastOneGives) {
  const std::vector<Unit> units = {{1, 10}, {2, 20}, {3, 30}};
  const std::vector<SiteRun> sites = {{4, 5, 2, kRunBefore}, {6, 7, 0, kRunAfter}, {8, 9, 1, kPartial}};
  const std::vector<Give> gives(1);
  Message message;
  message.rows = 2;
  message.n_gives = 1;
  message.n_sites = 3;
  Payload payload;
  payload.units = units;
  payload.sites = sites;
  payload.gives = gives;
  std::vector<std::string> seen;
  each_site(message, payload, [&](const Message& one, const Payload& its, size_t i) {
    std::string text =
        std::to_string(i) + ": " + std::to_string(one.site) + " " + std::to_string(one.edition);
    for (const Unit& unit : its.units) text += " " + std::to_string(unit.unit);
    EXPECT_EQ(one.n_units, its.units.size());
    EXPECT_EQ(one.flags, sites[i].flags);
    EXPECT_EQ(one.n_gives, its.gives.size());
    EXPECT_EQ(one.rows, 2u);
    EXPECT_TRUE(its.sites.empty());
    seen.push_back(text + (its.gives.empty() ? "" : " gives"));
  });
  EXPECT_THAT(seen, ElementsAre("0: 4 5 1 2", "1: 6 7", "2: 8 9 3 gives"));
}

}  // namespace
}  // namespace tierd
