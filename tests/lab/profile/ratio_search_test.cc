#include "tools/lab/profile/ratio_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tools/evaluation/loss.h"
#include "tools/lab/profile/ratio_report.h"

namespace tierd {
namespace {

using testing::HasSubstr;

const std::vector<double> kThree = {16, 8.5, 4.5};

double bits_of(const EditionShares& shares, const std::vector<double>& bits) {
  return std::inner_product(shares.begin(), shares.end(), bits.begin(), 0.0);
}

// Algorithm 1 as printed: r_high grows by s, and r_low falls by s n while it is not negative.
TEST(RatioSearch, TwoEditionsAreThePapersWalk) {
  const double high = 16, low = 4, step = 0.05, n = high / low;
  const auto points = points_of_budget({high, low}, low, step, true);
  double r_high = 0, r_low = 1;
  size_t i = 0;
  for (; r_low > -1e-9; ++i, r_high += step, r_low -= step * n) {
    ASSERT_LT(i, points.size());
    EXPECT_NEAR(points[i][0], r_high, 1e-9);
    EXPECT_NEAR(points[i][1], std::max(0.0, r_low), 1e-9);
  }
  EXPECT_EQ(i, points.size());
}

TEST(RatioSearch, EveryPointTakesTheBudget) {
  for (const double budget : {1.0, 4.5, 8.4, 12.0, 16.0, 20.0}) {
    for (const bool drops : {false, true}) {
      const auto points = points_of_budget(kThree, budget, 0.125, drops);
      EXPECT_EQ(points.empty(), !drops && budget < kThree.back()) << budget;
      for (const EditionShares& shares : points) {
        const double used = std::accumulate(shares.begin(), shares.end(), 0.0);
        EXPECT_LE(used, 1 + 1e-9);
        EXPECT_LE(bits_of(shares, kThree), budget + 1e-9);
        EXPECT_TRUE(std::abs(bits_of(shares, kThree) - budget) < 1e-9 || used > 1 - 1e-9);
        if (!drops) {
          EXPECT_NEAR(used, 1, 1e-9);
        }
        for (const double share : shares) EXPECT_GE(share, 0);
      }
    }
  }
  // The paper's ratio for LLaMA-13B is among the points of its size.
  const auto points = points_of_budget(kThree, bits_of({.25, .25, .5}, kThree), 0.125, false);
  EXPECT_TRUE(std::ranges::any_of(points, [](const EditionShares& shares) {
    return std::abs(shares[0] - .25) < 1e-9 && std::abs(shares[1] - .25) < 1e-9;
  }));
}

TEST(RatioSearch, SharesAreSaidAsPluginsReadThem) {
  EXPECT_EQ(ratios_text({.25, .25, .5}), "25/25/50");
  EXPECT_EQ(ratios_text({.125, 0, .375}), "25/0/75");
  EXPECT_EQ(kept_share({.125, 0, .375}), .5);
  EXPECT_EQ(ratios_text({0.1, 0.2, 0}), "33.33/66.67/0");
  EXPECT_EQ(ratios_text({1, 0, 0}), "100/0/0");
}

TEST(RatioSearch, TheReportNamesTheSurestAndTheBest) {
  const std::vector<RatioScore> scores = {
      {{.5, 0, .2}, 8.9, 120.5, 30}, {{.25, .25, .5}, 8.4, 100.25, 30.3}, {{0, .5, .5}, 6.5, 110, 31}};
  EXPECT_EQ(surest(scores), 1u);
  EXPECT_EQ(best(scores), 0u);
  const std::string table = ratio_table(scores, {"f16", "q8_0", "q4_0"});
  EXPECT_THAT(table, HasSubstr("* 25/25/50"));
  EXPECT_THAT(table,
              HasSubstr("least perplexity of all: 71.43/0/28.57 of 70.0 %; the chosen one has +1.00 %"));
  EXPECT_THAT(
      ratio_toml(scores[1], "found", true),
      testing::StrEq(
          "# found: 8.40 bits a value, UQEst 100.25 nats\n[predictor]\nname = \"low-rank\"\nkeep = 1\n\n"
          "[quantizer]\nname = \"mixed\"\nratios = \"25/25/50\"\n"));
}

TEST(Entropy, IsThatOfTheDistribution) {
  EXPECT_NEAR(entropy(std::vector<float>(8, 3.0F)), std::log(8), 1e-6);
  EXPECT_NEAR(entropy(std::vector<float>{100, 0, 0}), 0, 1e-6);
  const std::vector<float> logits = {1, 2, -1};
  double sum = 0, nats = 0;
  for (const float x : logits) sum += std::exp(x);
  for (const float x : logits) nats -= std::exp(x) / sum * std::log(std::exp(x) / sum);
  EXPECT_NEAR(entropy(logits), nats, 1e-6);
}

}  // namespace
}  // namespace tierd
