// Sites stored in several encodings. The quantizer chooses for each neuron which edition is fetched, kept and
// computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::ElementsAre;

// Returns the edition and the neurons of each message of the pass: "0:0,3 1:1".
std::string computed(const ScriptedWorld& world, SiteId site, uint32_t step) {
  std::string text;
  for (const Computed& c : world.compute.log) {
    if (c.site != site || c.step != step || c.neurons.empty()) continue;
    text += (text.empty() ? "" : " ") + std::to_string(c.edition) + ":";
    for (size_t i = 0; i < c.neurons.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(c.neurons[i]);
  }
  return text;
}

TEST(Editions, TheQuantizersChoiceIsFetchedAndComputed) {
  ScriptedWorld world({.neurons = {6}, .slots = {0, 0, 0}, .neurons_per_block = 2, .editions = 3});
  world.script.choose = by_number;
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(world.reads(), "[0,3][7,10][14,17]") << "extents 0 to 5, 6 to 11 and 12 to 17";
  EXPECT_EQ(computed(world, 0, 0), "0:0,3 1:1,4 2:2,5");
  EXPECT_EQ(world.scheduler->counters().streamed_bytes, 2u * (3 * 4096 - 2048 - 96 * 3 - 3072));
  world.expect_nothing_lost();
}

TEST(Editions, EachHasAResidencyOfItsOwn) {
  ScriptedWorld world({.neurons = {4}, .slots = {4, 4, 4}, .neurons_per_block = 4, .editions = 3});
  world.script.admit = keep_what_fits();
  for (const uint8_t level : {uint8_t{0}, uint8_t{2}, uint8_t{0}}) {
    world.script.choose = all_in(level);
    ASSERT_TRUE(world.pass(0, 0).ok());
  }
  EXPECT_EQ(world.scheduler->counters().misses, 8u);
  EXPECT_EQ(world.scheduler->counters().hits, 4u) << "the second time the first edition is still there";
  for (const EditionId edition : {0u, 1u, 2u})
    EXPECT_EQ(world.residency.valid_count(edition), edition == 1 ? 0u : 4u);
  EXPECT_THAT(world.script.calls, testing::Contains("landed 2:0,1,2,3"));
  world.expect_nothing_lost();
}

// Sums are made edition by edition, whichever edition arrived first.
TEST(Editions, AreSummedInTheirOrder) {
  ScriptedWorld world({.neurons = {3 * kRun},
                       .slots = {3 * kRun, 0, 3 * kRun},
                       .blocks = 3,
                       .neurons_per_block = kRun,
                       .bundles = true,
                       .editions = 3});
  world.script.admit = keep_what_fits();
  world.script.choose = all_in(2);
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.script.choose = by_number;
  world.idle = [&] {
    if (!world.flash.open.empty()) world.flash.finish(world.flash.open.size() - 1);
  };
  ASSERT_TRUE(world.pass(0, 1).ok());
  std::vector<std::pair<EditionId, uint32_t>> order;
  for (const Computed& c : world.compute.log) {
    if (c.step != 1) continue;
    for (const uint32_t neuron : c.neurons) order.emplace_back(c.edition, neuron);
  }
  EXPECT_EQ(order.size(), 3u * kRun);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_TRUE(world.compute.log.back().after);
  world.expect_nothing_lost();
}

// One block serves all editions: a run returns it before the next edition needs it.
TEST(Editions, ShareOneBlock) {
  ScriptedWorld world({.neurons = {2 * kRun},
                       .slots = {0, 0, 0},
                       .blocks = 1,
                       .neurons_per_block = kRun,
                       .bundles = true,
                       .editions = 3});
  world.script.choose = by_number;
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.flash.started.size(), 3u) << "one read for each edition, whose runs fit";
  EXPECT_EQ(world.flash.most_open, 1u);
  world.expect_nothing_lost();
}

TEST(Editions, LookAheadFetchesWhatTheQuantizerWouldChoose) {
  ScriptedWorld world({.neurons = {1, 4}, .slots = {0, 0, 0, 0}, .neurons_per_block = 4, .editions = 2});
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1}} : std::vector<Ahead>{};
  };
  world.script.choose = [](const tierd_set_view* set, uint8_t* level) {
    for (uint32_t i = 0; i < set->n; ++i) level[i] = i < 2 ? 1 : 0;
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(world.scheduler->counters().staged, 4u);
  EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  // At the next step the quantizer chooses otherwise between the wish and the pass.
  ASSERT_TRUE(world.pass(0, 1).ok());
  for (world.settle(); !world.flash.open.empty(); world.settle()) world.flash.finish();
  world.script.choose = all_in(0);
  ASSERT_TRUE(world.pass(1, 1).ok());
  world.expect_whole(1, 1, {0, 1, 2, 3});
  EXPECT_EQ(world.scheduler->counters().staged, 6u);
  ASSERT_TRUE(world.end_step(1).ok());
  world.expect_nothing_lost();
  EXPECT_EQ(world.scheduler->counters().wasted, 2u) << "two neurons of the second edition";
}

TEST(Editions, ACacheHearsWhatEachWasUsedFor) {
  ScriptedWorld world({.neurons = {6}, .slots = {0, 0, 0}, .neurons_per_block = 6, .editions = 3});
  world.script.choose = by_number;
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(world.script.calls, ElementsAre("touch 0:0,3", "touch 1:1,4", "touch 2:2,5"));
}

TEST(Editions, NobodyActiveIsAPassToo) {
  ScriptedWorld world({.neurons = {4}, .slots = {0, 0, 0}, .editions = 3});
  world.script.predict = [](SiteId, tierd_set_out* out) {
    out->n = 0;
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.computed(0, 0), "BA");
  EXPECT_THAT(world.script.calls, ElementsAre("touch 0:", "touch 1:", "touch 2:"));
  world.expect_nothing_lost();
}

// A site with one edition does not call the quantizer, and a run with one unit does not call the balancer.
TEST(Editions, OneIsNotAskedFor) {
  ScriptedWorld world({.neurons = {4}, .slots = {0}});
  world.script.choose = [](const tierd_set_view*, uint8_t*) { return TIERD_E_INTERNAL; };
  world.script.assign = [](const tierd_set_view*, uint8_t*) { return TIERD_E_INTERNAL; };
  EXPECT_TRUE(world.pass(0, 0).ok());
}

TEST(Editions, AnAnswerBeyondThemIsAFault) {
  ScriptedWorld world({.neurons = {4}, .slots = {0, 0}, .editions = 2});
  world.script.choose = all_in(2);
  const Status status = world.pass(0, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().line(), "quantizer 'script': choose: edition 2, expected a number below 2");
  world.heal();
  world.script.choose = all_in(1);
  EXPECT_TRUE(world.pass(0, 0).ok());
  world.expect_nothing_lost();
}

// Several units, each with both editions: every neuron is computed once, in order.
TEST(Editions, OfSeveralUnits) {
  ScriptedWorld world({.neurons = {8}, .slots = {2, 2}, .neurons_per_block = 8, .units = 2, .editions = 2});
  world.script.admit = keep_what_fits();
  world.script.choose = [](const tierd_set_view* set, uint8_t* level) {
    for (uint32_t i = 0; i < set->n; ++i) level[i] = i < 4 ? 0 : 1;
    return 0;
  };
  world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
    for (uint32_t i = 0; i < set->n; ++i) unit[i] = i % 2;
    return 0;
  };
  for (const uint32_t step : {0u, 1u}) {
    ASSERT_TRUE(world.pass(0, step).ok());
    for (RecordingCompute& unit : world.computes) {
      const uint32_t first = &unit == &world.computes.front() ? 0 : 1;
      std::vector<std::pair<EditionId, uint32_t>> order;
      for (const Computed& c : unit.log) {
        if (c.step != step) continue;
        for (const uint32_t neuron : c.neurons) order.emplace_back(c.edition, neuron);
      }
      std::sort(order.begin(), order.end());
      EXPECT_THAT(order, ElementsAre(std::pair(0u, first), std::pair(0u, first + 2), std::pair(1u, first + 4),
                                     std::pair(1u, first + 6)));
    }
  }
  EXPECT_EQ(world.scheduler->counters().hits, 8u);
  world.expect_nothing_lost();
}

// Predicts neurons 1, 3 and 4, with the greatest score for 4 and the lowest for 1.
int ranked(SiteId, tierd_set_out* out) {
  const std::vector<uint32_t> neurons = {1, 3, 4};
  const std::vector<float> scores = {-2, 1, 7};
  out->n = 3;
  std::copy(neurons.begin(), neurons.end(), out->idx);
  if (out->score == nullptr) return 0;
  std::copy(scores.begin(), scores.end(), out->score);
  out->scored = 1;
  return 0;
}
// Chooses the first edition for the neuron of the greatest score, the second for the others.
int best_first(const tierd_set_view* set, uint8_t* level) {
  EXPECT_NE(set->score, nullptr);
  const auto best = std::max_element(set->score, set->score + set->n) - set->score;
  for (uint32_t i = 0; i < set->n; ++i) level[i] = i == best ? 0 : 1;
  return 0;
}

TEST(Editions, AQuantizerRanksByScores) {
  ScriptedWorld world({.neurons = {6}, .slots = {0, 0}, .neurons_per_block = 6, .editions = 2});
  world.script.predict = ranked;
  world.strategies.scored = {1};
  world.script.choose = best_first;
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(computed(world, 0, 0), "0:4 1:1,3");
  world.expect_nothing_lost();
}

TEST(Editions, NobodyIsAskedForScoresThatNobodyReads) {
  ScriptedWorld world({.neurons = {6}, .slots = {0, 0}, .neurons_per_block = 6, .editions = 2});
  world.script.predict = [](SiteId site, tierd_set_out* out) {
    EXPECT_EQ(out->score, nullptr);
    return ranked(site, out);
  };
  world.script.choose = [](const tierd_set_view* set, uint8_t* level) {
    EXPECT_EQ(set->score, nullptr);
    std::fill_n(level, set->n, uint8_t{1});
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
}

TEST(Editions, APredictorMayRankAllOrNot) {
  ScriptedWorld world({.neurons = {3}, .slots = {0, 0}, .neurons_per_block = 3, .editions = 2});
  world.strategies.scored = {1};
  world.script.predict = [](SiteId, tierd_set_out* out) {
    out->all = out->scored = 1;
    for (uint32_t i = 0; i < 3; ++i) out->score[i] = static_cast<float>(i % 2);
    return 0;
  };
  world.script.choose = best_first;
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(computed(world, 0, 0), "0:1 1:0,2");
  world.script.predict = nullptr;  // all neurons, without scores
  world.script.choose = [](const tierd_set_view* set, uint8_t*) { return set->score == nullptr ? 0 : -1; };
  EXPECT_TRUE(world.pass(0, 1).ok());
}

TEST(Editions, AScoreThatIsNoNumberIsAFault) {
  ScriptedWorld world({.neurons = {6}, .slots = {0, 0}, .neurons_per_block = 6, .editions = 2});
  world.strategies.scored = {1};
  world.script.predict = [](SiteId site, tierd_set_out* out) {
    ranked(site, out);
    out->score[1] = NAN;
    return 0;
  };
  EXPECT_EQ(world.pass(0, 0).error().line(),
            "predictor 'script': predict: score nan at place 1: expected a finite number");
}

TEST(Editions, WhatIsOnlyMeasuredRanksLast) {
  ScriptedWorld world({.neurons = {6},
                       .slots = {0, 0},
                       .neurons_per_block = 6,
                       .bundles = true,
                       .measure_every = 1,
                       .editions = 2});
  world.script.predict = ranked;
  world.strategies.scored = {1};
  std::vector<float> scores;
  world.script.choose = [&](const tierd_set_view* set, uint8_t* level) {
    scores.assign(set->score, set->score + set->n);
    return best_first(set, level);
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  constexpr float kLast = std::numeric_limits<float>::lowest();
  EXPECT_THAT(scores, ElementsAre(kLast, -2, kLast, 1, 7, kLast));
  EXPECT_EQ(computed(world, 0, 0), "0:4 1:0,1,2,3,5");
  const SiteUse& use = world.scheduler->use()[0];
  EXPECT_EQ(use.used, 3u);
  EXPECT_EQ(use.used_bytes, world.sites.editions[0].slot_bytes + 2 * world.sites.editions[1].slot_bytes);
}

TEST(Editions, WhatIsWishedForIsRankedToo) {
  ScriptedWorld world({.neurons = {1, 4}, .slots = {0, 0, 0, 0}, .neurons_per_block = 4, .editions = 2});
  world.strategies.scored = {1, 1};
  world.script.predict = [](SiteId site, tierd_set_out* out) {
    out->all = site == 0 ? 1 : 0;
    if (site == 0) return 0;
    out->n = 2;
    out->idx[0] = 0, out->idx[1] = 2;
    out->score[0] = 1, out->score[1] = 2;
    out->scored = 1;
    return 0;
  };
  world.script.choose = [](const tierd_set_view* set, uint8_t* level) {
    return set->site == 0 ? 0 : best_first(set, level);
  };
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0, 2}, TIERD_NO_MEMORY, TIERD_NO_EDITION, {3, 4}}}
                     : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(1, 0).ok());
  EXPECT_EQ(computed(world, 1, 0), "2:2 3:0");
  EXPECT_EQ(world.scheduler->counters().staged, 2u);
  EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  // A score that is not finite is a fault here as well.
  world.script.look_ahead = [](SiteId) {
    return std::vector<Ahead>{{1, 1, Neurons{0}, TIERD_NO_MEMORY, TIERD_NO_EDITION, {INFINITY}}};
  };
  EXPECT_EQ(world.pass(0, 1).error().line(),
            "predictor 'script': look_ahead: score inf at place 0: expected a finite number");
}

// The balancer receives the chosen editions, and the predictor also the assigned units.
TEST(Editions, AreKnownToWhoIsAskedNext) {
  ScriptedWorld world({.neurons = {4}, .slots = {0, 0}, .neurons_per_block = 4, .units = 2, .editions = 2});
  world.script.choose = [](const tierd_set_view* set, uint8_t* level) {
    EXPECT_EQ(set->level, nullptr);
    for (uint32_t i = 0; i < set->n; ++i) level[i] = i < 2 ? 1 : 0;
    return 0;
  };
  world.script.assign = [](const tierd_set_view* set, uint8_t* unit) {
    EXPECT_EQ((std::vector<uint8_t>(set->level, set->level + set->n)), (std::vector<uint8_t>{1, 1, 0, 0}));
    for (uint32_t i = 0; i < set->n; ++i) unit[i] = i % 2;
    return 0;
  };
  bool heard = false;
  world.script.observe = [&](const tierd_set_view* predicted, const tierd_set_view* truth) {
    heard = true;
    EXPECT_EQ((std::vector<uint8_t>(predicted->level, predicted->level + 4)),
              (std::vector<uint8_t>{1, 1, 0, 0}));
    EXPECT_EQ((std::vector<uint8_t>(predicted->unit, predicted->unit + 4)),
              (std::vector<uint8_t>{0, 1, 0, 1}));
    EXPECT_EQ(truth->level, nullptr);
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_TRUE(heard);
}

// The quantizer is not called for such a wish.
TEST(Editions, AWishMayNameOne) {
  ScriptedWorld world({.neurons = {1, 4}, .slots = {0, 0, 0, 0}, .neurons_per_block = 4, .editions = 2});
  uint32_t asked = 0;
  world.script.choose = [&](const tierd_set_view* set, uint8_t* level) {
    asked += set->site == 1 ? 1 : 0;
    std::fill_n(level, set->n, uint8_t{0});
    return 0;
  };
  const EditionId second = world.sites[1].editions[1];
  world.script.look_ahead = [&](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, Neurons{0, 2}, TIERD_NO_MEMORY, second}}
                     : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  EXPECT_EQ(asked, 0u);
  const uint32_t first = world.sites.editions[second].first_extent;
  EXPECT_EQ(world.reads(), "[0][" + std::to_string(first) + "," + std::to_string(first + 2) + "]");
  world.expect_nothing_lost();
}

}  // namespace
}  // namespace tierd
