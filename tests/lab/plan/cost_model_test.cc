#include "tools/lab/plan/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/base/steady_disk.h"

namespace tierd {
namespace {

// Two operators, one of which is predicted, with figures that can be computed by hand.
CostModel two_operators() {
  return {.layers = 8,
          .operators = {{"qkv", 1000, 8192, true, 0.9}, {"o", 1000, 4096, true, std::nullopt}},
          .head_bytes = 0,
          .fixed_bytes = 1'000'000,
          .memory_rate = 10e9,
          .flash = ReadCurve({{4096, 0.5e9}, {8192, 1e9}, {32768, 2e9}}),
          .joins_reads = false,
          .hits = 0.25};
}

TEST(CostModel, TheEquationsByHand) {
  const CostModel model = two_operators();
  const double qkv = 8'192'000, o = 4'096'000;
  const auto cost = estimate_cost(model, 100'000'000, 0.5, 4);
  ASSERT_TRUE(cost.has_value());
  EXPECT_DOUBLE_EQ(cost->group_bytes, (qkv + o) * 0.5 * 4);              // (9)
  EXPECT_DOUBLE_EQ(cost->cache_bytes, 100e6 - 1e6 - cost->group_bytes);  // (8)
  EXPECT_DOUBLE_EQ(cost->compute, cost->group_bytes / 10e9);             // (4)
  const double missed = 0.75 * 0.5 * 4;
  EXPECT_DOUBLE_EQ(cost->load, missed * (qkv / 1e9 + o / 0.5e9));                   // (3)
  EXPECT_DOUBLE_EQ(cost->on_demand, missed * (0.1 * qkv / 1e9 + o / 0.5e9));        // (6)
  EXPECT_DOUBLE_EQ(cost->preload, missed * qkv / 2e9);                              // (7)
  const double overlap = cost->on_demand + std::max(cost->preload, cost->compute);  // (5)
  EXPECT_DOUBLE_EQ(cost->literal_token, cost->load + overlap + cost->compute);      // (1), two groups
  EXPECT_DOUBLE_EQ(cost->steady_token, 2 * overlap);
  EXPECT_DOUBLE_EQ(cost->flash_bytes, 2 * missed * (1.1 * qkv + o));
  EXPECT_DOUBLE_EQ(cost->hidden, cost->compute / cost->preload);
}

TEST(CostModel, WithoutLookAheadNothingOverlaps) {
  const CostModel model = two_operators();
  const auto cost = estimate_cost(model, 100'000'000, 0.5, 0);
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->preload, 0);
  EXPECT_DOUBLE_EQ(cost->on_demand, cost->load);
  EXPECT_DOUBLE_EQ(cost->steady_token, 8 * (cost->load + cost->compute));
  EXPECT_DOUBLE_EQ(cost->literal_token, cost->steady_token);
}

// Joined reads are never slower, and do not change equation 1.
TEST(CostModel, JoinedReads) {
  CostModel model = two_operators();
  const auto single = estimate_cost(model, 100'000'000, 0.5, 4);
  model.joins_reads = true;
  const auto joined = estimate_cost(model, 100'000'000, 0.5, 4);
  EXPECT_LT(joined->on_demand, single->on_demand);
  EXPECT_LE(joined->preload, single->preload);
  EXPECT_LT(joined->steady_token, single->steady_token);
  EXPECT_EQ(joined->literal_token, single->literal_token);
  EXPECT_EQ(joined->load, single->load);
}

// Each operator with misses waits for a first read: eight layers of two operators. A fully predicted operator
// has no misses.
TEST(CostModel, EachDemandWaitsForAFirstRead) {
  CostModel model = two_operators();
  const auto before = estimate_cost(model, 100'000'000, 0.5, 0);
  model.first_read = 1e-4;
  const auto after = estimate_cost(model, 100'000'000, 0.5, 0);
  EXPECT_NEAR(after->steady_token, before->steady_token + 8 * 2 * 1e-4, 1e-12);
  EXPECT_EQ(after->load, before->load);
  model.operators[0].similarity = 1;
  const auto foretold = estimate_cost(model, 100'000'000, 0.5, 4);
  model.first_read = 0;
  EXPECT_NEAR(foretold->on_demand, estimate_cost(model, 100'000'000, 0.5, 4)->on_demand + 4 * 1e-4, 1e-12);
  model.first_read = 1e-4;
  model.hits = 1;
  EXPECT_EQ(estimate_cost(model, 100'000'000, 0.5, 0)->on_demand, 0);
}

TEST(CostModel, CachesHitAsTheyAreLargeWhereNothingElseIsKnown) {
  CostModel model = two_operators();
  model.hits.reset();
  const double all = 8 * model.layer_bytes();
  const auto cost = estimate_cost(model, 60'000'000, 0.5, 1);
  EXPECT_DOUBLE_EQ(cost->hits, cost->cache_bytes / all);
  EXPECT_DOUBLE_EQ(estimate_cost(model, 1'000'000'000, 0.5, 1)->hits, 1);
  EXPECT_EQ(estimate_cost(model, 1'000'000'000, 0.5, 1)->load, 0);
  EXPECT_FALSE(estimate_cost(model, 2'000'000, 0.5, 1).has_value());
}

// 8 layers in groups of 3: the last group has two layers and takes two thirds of a group's time.
TEST(CostModel, GroupsNeedNotDivideTheLayers) {
  const CostModel model = two_operators();
  const auto cost = estimate_cost(model, 100'000'000, 0.5, 3);
  EXPECT_DOUBLE_EQ(cost->steady_token, 8.0 / 3 * (cost->on_demand + std::max(cost->preload, cost->compute)));
}

// Llama-2-7B in Q4_0 at 60 % without a cache, memory five times as fast as the disk, which reaches 90 % of
// its peak at 64 KiB, 5 % on demand (ActiveFlow, Fig. 16): N = 4 is 2.2 times as fast as N = 0, N = 1 hardly
// slower than twice and N = 8 no slower than N = 4.
TEST(CostModel, TheGainOfThePapersFigure) {
  for (const double rate : {5.8e9, 4.2e9, 3.6e9}) {
    CostModel model{.layers = 32,
                    .operators = {{"q", 3 * 4096, 4096 * 9 / 16, true, 0.95},
                                  {"o", 4096, 4096 * 9 / 16, true, 0.95},
                                  {"up", 2 * 4096, 11008 * 9 / 16, true, 0.95},
                                  {"down", 11008, 4096 * 9 / 16, true, 0.95}},
                    .memory_rate = 5 * rate,
                    .flash = steady_disk(65536 / rate / 9, rate),
                    .hits = 0};
    const auto token = [&](uint32_t group) {
      return estimate_cost(model, 4'000'000'000, 0.6, group)->steady_token;
    };
    EXPECT_GT(token(0) / token(1), 1.0);
    EXPECT_LT(token(0) / token(1), 1.6);
    EXPECT_GT(token(0) / token(4), 1.8);
    EXPECT_LT(token(0) / token(4), 3.2);  // blocks of 4096 make single channels slower than the paper's line
    EXPECT_LE(token(8), token(4));
  }
}

TEST(CostSearch, TakesTheSparsityThatTheBudgetAsksFor) {
  const CostModel model = two_operators();
  const uint64_t all = 8 * 12'288'000;
  const auto choice = choose_cost(model, all / 4, all, std::nullopt, 0.05);
  ASSERT_TRUE(choice.has_value());
  EXPECT_DOUBLE_EQ(choice->chosen.sparsity, 0.75);
  EXPECT_DOUBLE_EQ(choose_cost(model, all / 4, all, 0.6, 0.05)->chosen.sparsity, 0.6);
  EXPECT_DOUBLE_EQ(choose_cost(model, 2 * all, all, std::nullopt, 0.05)->chosen.sparsity, 0);
  EXPECT_FALSE(choose_cost(model, 1'000'000, all, std::nullopt, 0.05).has_value());
}

TEST(CostSearch, EndsWhereComputingTakesAsLong) {
  CostModel model = two_operators();
  model.memory_rate = 1e9;
  const auto choice = choose_cost(model, 100'000'000, 98'304'000, 0.5, 0.05);
  EXPECT_EQ(choice->chosen.group, 1u);
  EXPECT_EQ(choice->why, "reading ahead takes no longer than computing");
}

TEST(CostSearch, EndsWhereAnotherLayerWinsLittle) {
  CostModel model = two_operators();
  model.memory_rate = 100e9;
  const auto choice = choose_cost(model, 100'000'000, 98'304'000, 0.5, 0.05);
  EXPECT_EQ(choice->chosen.group, 4u);  // the disk reads 32 KiB at its best rate
  EXPECT_EQ(choice->why, "another layer wins less than 5 %");
}

TEST(CostSearch, NothingAheadWhereThatIsFaster) {
  CostModel model = two_operators();
  model.memory_rate = 100e9;
  EXPECT_EQ(choose_fastest(model, 100'000'000, 98'304'000, 0.5, 0.05).chosen.group, 4u);
  // With a poor prediction, prefetched channels are read again.
  model.operators[0].similarity = 0.1;
  const CostChoice choice = choose_fastest(model, 100'000'000, 98'304'000, 0.5, 0.05);
  EXPECT_EQ(choice.chosen.group, 0u);
  EXPECT_EQ(choice.why, "nothing read ahead is faster than the N = 4 of the greedy search");
}

// Half of a layer's channels take 6 MB, and the budget has 2 MB for them. They are read on demand, and none
// stays.
TEST(CostSearch, NothingAheadWhereNoLayerFits) {
  CostModel model = two_operators();
  model.hits.reset();
  const uint64_t budget = 3'000'000;
  ASSERT_FALSE(choose_cost(model, budget, 98'304'000, 0.5, 0.05).has_value());
  const CostChoice choice = choose_fastest(model, budget, 98'304'000, 0.5, 0.05);
  EXPECT_EQ(choice.chosen.group, 0u);
  EXPECT_EQ(choice.chosen.group_bytes, 2e6);
  EXPECT_EQ(choice.chosen.hits, 0);
  EXPECT_DOUBLE_EQ(choice.chosen.compute, 0.5 * 12'288'000 / 10e9);
  EXPECT_EQ(choice.why, "the channels of one layer do not fit the budget");
  EXPECT_EQ(choose_fastest(model, budget, 98'304'000, std::nullopt, 0.05).chosen.sparsity, 0.95);
}

// A head of 10 MB, 4 of which fit beside M_cl: 6 are read at the disk's best rate while the head is computed.
TEST(CostModel, WhatDoesNotFitOfTheHeadIsReadAnew) {
  CostModel model = two_operators();
  const uint64_t budget = 1'000'000 + 6'144'000 + 4'000'000;
  const auto without = estimate_cost(model, budget, 0.5, 1);
  model.head_bytes = 10'000'000;
  const auto with = estimate_cost(model, budget, 0.5, 1);
  EXPECT_EQ(with->cache_bytes, 0);
  EXPECT_NEAR(with->steady_token, without->steady_token + 6e6 / 2e9, 1e-12);
  EXPECT_NEAR(with->flash_bytes, without->flash_bytes + 6e6, 1e-3);
  const auto whole = estimate_cost(model, budget + 6'000'000, 0.5, 1);
  EXPECT_NEAR(whole->steady_token, without->steady_token + 10e6 / 10e9, 1e-12);
}

TEST(CostModel, TheLosslessWayReadsWhatDoesNotFit) {
  const CostModel model = two_operators();
  const double all = 8 * 12'288'000;
  EXPECT_DOUBLE_EQ(lossless_token(model, 200'000'000), all / 10e9);
  EXPECT_DOUBLE_EQ(lossless_token(model, 51'000'000), (all + 1e6 - 51e6) / 2e9);
}

TEST(CostSearch, EndsWhereTheBudgetDoes) {
  CostModel model = two_operators();
  model.memory_rate = 100e9;
  const auto choice = choose_cost(model, 15'000'000, 98'304'000, 0.5, 0);
  EXPECT_EQ(choice->chosen.group, 2u);
  EXPECT_EQ(choice->why, "a larger group does not fit the budget");
}

// Compares with counting: drawn pieces, read in runs over gaps of every length.
TEST(CostModel, JoinsReadsOverTheBestGap) {
  const ReadCurve curve = steady_disk(20e-6, 2e9);
  std::mt19937 random(1);
  for (const double density : {0.02, 0.2, 0.5, 0.9}) {
    constexpr int kPieces = 200'000;
    constexpr uint64_t kBytes = 8192;
    std::vector<int> wanted;
    std::bernoulli_distribution draw(density);
    for (int i = 0; i < kPieces; ++i) {
      if (draw(random)) wanted.push_back(i);
    }
    double least = 1e9;
    for (int most = 0; most < 40; ++most) {
      double total = 0;
      for (size_t begin = 0, end = 1; begin < wanted.size(); begin = end++) {
        while (end < wanted.size() && wanted[end] - wanted[end - 1] - 1 <= most) ++end;
        const uint64_t bytes = kBytes * static_cast<uint64_t>(wanted[end - 1] - wanted[begin] + 1);
        total += curve.seconds(static_cast<double>(bytes), std::min<uint64_t>(bytes, 1 << 20), true);
      }
      least = std::min(least, total);
    }
    const double found =
        scattered_seconds(curve, static_cast<double>(wanted.size() * kBytes), kBytes, true, density);
    EXPECT_NEAR(found / least, 1, 0.05) << density;
  }
  EXPECT_EQ(scattered_seconds(curve, 0, 4096, true, 0), 0);
  EXPECT_NEAR(scattered_seconds(curve, 1e9, 4096, true, 1), 1e9 / curve.rate(1 << 20, true), 1e-3);
}

}  // namespace
}  // namespace tierd
