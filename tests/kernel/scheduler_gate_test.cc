// Predictors that read activations, rows that use different neurons, and measured passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/pass/scheduler.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Predicts these neurons for all rows of every site.
auto predicts_everywhere(Neurons neurons) {
  return [neurons = std::move(neurons)](SiteId, tierd_set_out* out) {
    out->n = static_cast<uint32_t>(neurons.size());
    std::copy(neurons.begin(), neurons.end(), out->idx);
    return 0;
  };
}

TEST(SchedulerGate, APredictorSeesWhatTheSegmentBeforeHasLeft) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}, .rows = 2, .reads_x = true});
  uint32_t asked = 0;
  world.script.sees = [&](SiteId site, const tierd_rows_view* rows) {
    ++asked;
    EXPECT_EQ(rows->rows, 2u);
    ASSERT_EQ(rows->dim, 3u);
    for (uint32_t r = 0; r < 2; ++r) {
      for (uint32_t j = 0; j < 3; ++j) EXPECT_EQ(rows->x[3 * r + j], input_value(site, r, j));
    }
    EXPECT_EQ(world.compute.log.size(), 1u) << "nothing but the segment has run";
    EXPECT_EQ(world.reads(), "");
  };
  world.script.predict = predicts_everywhere({1, 3});
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(asked, 1u);
  EXPECT_EQ(world.computed(0, 0), "B 1 3A");
  EXPECT_FALSE(world.compute.log[0].partial) << "it was not known yet";
  EXPECT_TRUE(world.compute.log[1].partial);
  EXPECT_FALSE(world.compute.log[2].partial);
  world.expect_nothing_lost();
}

TEST(SchedulerGate, NobodySeesActivationsWhoDoesNotAsk) {
  ScriptedWorld world({.neurons = {2}, .slots = {0}});
  world.script.sees = [](SiteId, const tierd_rows_view* rows) { EXPECT_EQ(rows->x, nullptr); };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.computed(0, 0), "B 0 1A");
}

TEST(SchedulerGate, ASegmentBeforeWaitsForAFreeMessage) {
  ScriptedWorld world({.neurons = {8, 8}, .slots = {0, 0}, .messages = 2, .reads_x = true});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, std::nullopt}} : std::vector<Ahead>{};
  };
  for (uint32_t step = 0; step < 3; ++step) {
    for (const SiteId site : {0u, 1u}) ASSERT_TRUE(world.pass(site, step).ok());
  }
  world.expect_whole(1, 2, {0, 1, 2, 3, 4, 5, 6, 7});
  world.expect_nothing_lost();
}

TEST(SchedulerGate, EachRowUsesItsOwnNeurons) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}, .rows = 3});
  world.script.predict = [](SiteId, tierd_set_out* out) {
    EXPECT_EQ(out->row_mask[0], ~uint64_t{0}) << "unless it is said otherwise, every row uses all";
    out->idx[0] = 0, out->row_mask[0] = 1;
    out->idx[1] = 2;  // left unchanged
    out->n = 2;
    return 0;
  };
  world.script.observe = [](const tierd_set_view* predicted, const tierd_set_view* truth) {
    ASSERT_EQ(predicted->n, 2u);
    EXPECT_EQ(predicted->row_mask[0], 1u);
    EXPECT_EQ(predicted->row_mask[1], 7u) << "nothing beyond the rows";
    EXPECT_EQ(truth->known, TIERD_KNOWN_COMPUTED);
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  std::map<uint32_t, uint64_t> rows;
  for (const Computed& c : world.compute.log) rows.insert(c.rows.begin(), c.rows.end());
  EXPECT_THAT(rows, ElementsAre(testing::Pair(0, 1), testing::Pair(2, 7)));
  EXPECT_EQ(world.scheduler->use()[0].rows, 3u);
  EXPECT_EQ(world.scheduler->use()[0].used, 4u);
  EXPECT_EQ(world.scheduler->use()[0].used_bytes, 4u * world.sites.editions[0].slot_bytes);
}

// A router chooses: no predictor is called, each row has its own experts, and all chosen ones are fetched.
TEST(SchedulerGate, TheSegmentBeforeChooses) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}, .rows = 2, .experts = true});
  world.script.predict = [](SiteId, tierd_set_out*) {
    ADD_FAILURE() << "it is known";
    return 0;
  };
  std::vector<Neurons> asked;
  world.script.admit = [&](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                           tierd_victims_out*) {
    // Row r uses neuron i unless 3 divides r + i.
    asked.emplace_back(missing->idx, missing->idx + missing->n);
    std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_KEEP});
    return 0;
  };
  world.strategies.scored = {1};
  world.script.observe = [](const tierd_set_view* given, const tierd_set_view* truth) {
    EXPECT_EQ(given->kind, TIERD_SET_GIVEN);
    // The score is the greatest weight that a row gives the neuron.
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(given->score[i], std::max(contribution_value(0, i), contribution_value(1, i)));
    EXPECT_EQ(truth->known, TIERD_KNOWN_ALL);
    ASSERT_EQ(truth->n, 4u);
    EXPECT_EQ((std::vector<uint64_t>(truth->row_mask, truth->row_mask + 4)),
              (std::vector<uint64_t>{2, 3, 1, 2}));
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(asked, ElementsAre(Neurons{0, 1, 2, 3}));
  EXPECT_TRUE(world.compute.log[0].before) << "alone: the kernel waits for it";
  EXPECT_TRUE(world.compute.log[0].neurons.empty());
  EXPECT_EQ(world.scheduler->use()[0].used, 5u);
  EXPECT_EQ(world.scheduler->use()[0].used_bytes, 5u * world.sites.editions[0].slot_bytes);
  EXPECT_THAT(world.script.calls, testing::Contains("touch 0:0,1,2,3"));
  world.expect_nothing_lost();
}

TEST(SchedulerGate, WhatIsChosenIsComputedInTheOrderOfItsNumbersAsItComes) {
  ScriptedWorld world({.neurons = {8}, .slots = {0}, .blocks = 4, .experts = true});
  ASSERT_TRUE(world.pass(0, 0).ok());
  // The one row uses all neurons but 0, 3 and 6. The neurons read in one block are computed separately.
  Neurons all;
  for (const Computed& c : world.compute.log) all.insert(all.end(), c.neurons.begin(), c.neurons.end());
  EXPECT_EQ(all, (Neurons{1, 2, 4, 5, 7}));
  EXPECT_GT(world.compute.log.size(), 3u);
  world.expect_nothing_lost();
}

TEST(SchedulerGate, RowsThatAllUseTheSameNeedNoMasks) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}, .rows = 3});
  world.script.predict = predicts_everywhere({0, 2});
  ASSERT_TRUE(world.pass(0, 0).ok());
  for (const Computed& c : world.compute.log) EXPECT_TRUE(c.rows.empty());
}

TEST(SchedulerGate, AMeasuredPassComputesAllAndUsesWhatWasPredicted) {
  ScriptedWorld world(
      {.neurons = {4}, .slots = {4}, .neurons_per_block = 4, .rows = 2, .bundles = true, .measure_every = 2});
  world.script.predict = predicts_everywhere({0, 1});
  std::vector<Neurons> asked;
  world.script.admit = [&](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                           tierd_victims_out*) {
    asked.emplace_back(missing->idx, missing->idx + missing->n);
    std::fill_n(verdict, missing->n, uint8_t{TIERD_VERDICT_KEEP});
    return 0;
  };
  std::vector<uint8_t> known;
  world.script.observe = [&](const tierd_set_view* predicted, const tierd_set_view* truth) {
    known.push_back(truth->known);
    EXPECT_EQ(predicted->n, 2u);
    if (truth->known != TIERD_KNOWN_SAMPLED) return;
    // Neuron i contributes to row r unless 3 divides r + i.
    ASSERT_EQ(Neurons(truth->idx, truth->idx + truth->n), (Neurons{0, 1, 2, 3}));
    EXPECT_EQ((std::vector<uint64_t>(truth->row_mask, truth->row_mask + 4)),
              (std::vector<uint64_t>{2, 3, 1, 2}));
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  std::map<uint32_t, uint64_t> rows;
  for (const Computed& c : world.compute.log) {
    rows.insert(c.rows.begin(), c.rows.end());
    EXPECT_TRUE(c.measured || c.neurons.empty());
  }
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0] & 3, 3u);
  EXPECT_EQ(rows[1] & 3, 3u);
  EXPECT_EQ(rows[2], 0u) << "computed for nobody";
  EXPECT_EQ(rows[3], 0u);
  EXPECT_THAT(asked, ElementsAre(Neurons{0, 1})) << "what is only measured streams by";
  EXPECT_THAT(world.script.calls, testing::Contains("touch 0:0,1"));
  EXPECT_EQ(world.scheduler->counters().measured_bytes, 2u * (kSlot - 96));
  EXPECT_EQ(world.scheduler->counters().misses, 2u);
  EXPECT_EQ(world.scheduler->counters().streamed_bytes, 2u * (kSlot - 96));

  const SiteUse& use = world.scheduler->use()[0];
  EXPECT_EQ(use.measured_rows, 2u);
  EXPECT_EQ(use.predicted, 4u);
  EXPECT_EQ(use.active, 5u);
  EXPECT_EQ(use.missed, 2u);
  EXPECT_EQ(use.recall(), 3.0 / 5);
  EXPECT_EQ(use.precision(), 3.0 / 4);
  // Contributions: row 0: 0, 2, 3, 0; row 1: 2, 3, 0, 5.
  EXPECT_EQ(use.mass, 15.0);
  EXPECT_EQ(use.missed_share(), 8.0 / 15);

  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_THAT(known, ElementsAre(TIERD_KNOWN_SAMPLED, TIERD_KNOWN_COMPUTED));
  world.expect_whole(0, 1, {0, 1});
  EXPECT_EQ(use.measured_rows, 2u);
  world.expect_nothing_lost();
}

TEST(SchedulerGate, WhatIsActiveAsAWholeIsMeasuredToo) {
  ScriptedWorld world(
      {.neurons = {3}, .slots = {0}, .neurons_per_block = 3, .bundles = true, .measure_every = 1});
  world.script.observe = [](const tierd_set_view*, const tierd_set_view* truth) {
    EXPECT_EQ(truth->known, TIERD_KNOWN_ALL);
    EXPECT_EQ(Neurons(truth->idx, truth->idx + truth->n), (Neurons{1, 2}));
    EXPECT_EQ(truth->row_mask, nullptr);
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.scheduler->use()[0].missed, 0u);
  EXPECT_EQ(world.scheduler->use()[0].active, 2u);
}

TEST(SchedulerGate, UnitsMeasureTheirShares) {
  ScriptedWorld world({.neurons = {4},
                       .slots = {2},
                       .neurons_per_block = 4,
                       .units = 2,
                       .rows = 2,
                       .bundles = true,
                       .reads_x = true,
                       .measure_every = 1});
  world.script.predict = predicts_everywhere({0, 1, 3});
  world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
    for (uint32_t i = 0; i < set->n; ++i) unit[i] = (set->idx == nullptr ? i : set->idx[i]) % 2;
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  const SiteUse& use = world.scheduler->use()[0];
  EXPECT_EQ(use.active, 5u);
  EXPECT_EQ(use.missed, 1u);
  EXPECT_EQ(use.missed_mass, 3.0);
  // Each cache receives the neurons that its unit used.
  EXPECT_THAT(world.script.calls, testing::IsSupersetOf({"touch 0:0", "touch 0:1,3"}));
  // Results are zeroed before the other unit's are added.
  const auto& log = world.computes[0].log;
  const auto cleared = std::find_if(log.begin(), log.end(), [](const Computed& c) { return c.partial; });
  const auto taken = std::find_if(log.begin(), log.end(), [](const Computed& c) { return !c.takes.empty(); });
  EXPECT_LT(cleared, taken);
  EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const Computed& c) { return c.before; }), 1);
  EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const Computed& c) { return c.partial; }), 1);
  world.expect_nothing_lost();
}

TEST(SchedulerGate, ACacheLetsGoOfWhatItDoesNotWantAnyLonger) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}});
  world.script.admit = keep_what_fits();
  world.script.expire = [](EditionId edition, tierd_victims_out* victims) {
    EXPECT_EQ(victims->cap, 4u);
    victims->item[victims->n++] = {edition, 1};
    victims->item[victims->n++] = {edition, 3};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_TRUE(world.residency.valid(0, 0));
  EXPECT_FALSE(world.residency.valid(0, 1));
  EXPECT_FALSE(world.residency.valid(0, 3));
  EXPECT_THAT(world.script.calls, testing::Contains("dropped 0:1,3"));
  world.script.expire = nullptr;
  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_EQ(world.scheduler->counters().hits, 2u);
  world.expect_nothing_lost();
}

TEST(SchedulerGate, WhatIsNotHereCannotExpire) {
  ScriptedWorld world({.neurons = {4}, .slots = {4}});
  world.script.expire = [](EditionId edition, tierd_victims_out* victims) {
    victims->item[victims->n++] = {edition, 1};
  };
  const Status status = world.pass(0, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().line(), HasSubstr("expire: victim 1 of edition 0 cannot be evicted"));
}

}  // namespace
}  // namespace tierd
