#include "tools/lab/train/low_rank_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

// Neither the tokens nor the neurons are a multiple of a piece.
constexpr uint32_t kWidth = 20;
constexpr uint32_t kNeurons = 300;
constexpr uint32_t kRank = 5;
constexpr uint32_t kTokens = 70;
constexpr PairWeights kWeights{.active = 3, .inactive = 0.5};

std::vector<float> drawn_values(Random& random, size_t count, float scale) {
  std::vector<float> values(count);
  for (float& value : values) value = scale * random.symmetric();
  return values;
}

struct GradientCase {
  LowRank predictor;
  uint32_t tokens = 0;
  std::vector<float> x, contributions;
  TokenBatch batch() const { return {tokens, x, contributions}; }
};

GradientCase make_gradient_case(uint32_t tokens = kTokens, uint32_t neurons = kNeurons) {
  Random random(7);
  GradientCase world{{kRank, kWidth, neurons, {}, {}, {}}, tokens, {}, {}};
  world.predictor.a = drawn_values(random, kRank * kWidth, 1);
  world.predictor.b = drawn_values(random, neurons * kRank, 2);
  world.predictor.bias = drawn_values(random, neurons, 1);
  world.x = drawn_values(random, tokens * kWidth, 1);
  world.contributions = drawn_values(random, tokens * neurons, 1);
  for (float& value : world.contributions) value = std::max(value, 0.0F);
  return world;
}

// The definition, in plain loops and f64.
double naive_loss(const GradientCase& world, const std::vector<double>& a, const std::vector<double>& b,
                  const std::vector<double>& bias) {
  double sum = 0;
  for (uint32_t t = 0; t < kTokens; ++t) {
    std::vector<double> hidden(kRank);
    for (uint32_t k = 0; k < kRank; ++k) {
      for (uint32_t i = 0; i < kWidth; ++i) hidden[k] += a[k * kWidth + i] * world.x[t * kWidth + i];
    }
    for (uint32_t n = 0; n < kNeurons; ++n) {
      double score = bias[n];
      for (uint32_t k = 0; k < kRank; ++k) score += b[n * kRank + k] * hidden[k];
      const bool active = world.contributions[t * kNeurons + n] > 0;
      const double probability = 1 / (1 + std::exp(-score));
      sum -= active ? kWeights.active * std::log(probability) : kWeights.inactive * std::log(1 - probability);
    }
  }
  return sum / (kTokens * kNeurons);
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

TEST(LowRankGradient, IsTheSlopeOfThePlainLoss) {
  const GradientCase world = make_gradient_case();
  Team team({.workers = 1});
  LowRankGradient gradients(team);
  LowRank found;
  const double loss = gradients.compute(world.predictor, world.batch(), kWeights, found);
  std::vector<double> a = widened(world.predictor.a), b = widened(world.predictor.b),
                      bias = widened(world.predictor.bias);
  EXPECT_NEAR(loss, naive_loss(world, a, b, bias), 1e-5 * loss);
  const auto expect_slopes = [&](std::vector<double>& values, const std::vector<float>& slopes, size_t step) {
    ASSERT_EQ(slopes.size(), values.size());
    for (size_t i = 0; i < values.size(); i += step) {
      constexpr double kSmall = 1e-5;
      const double at = values[i];
      values[i] = at + kSmall;
      const double above = naive_loss(world, a, b, bias);
      values[i] = at - kSmall;
      const double below = naive_loss(world, a, b, bias);
      values[i] = at;
      EXPECT_NEAR(slopes[i], (above - below) / (2 * kSmall), 1e-6) << i;
    }
  };
  expect_slopes(a, found.a, 3);
  expect_slopes(b, found.b, 29);
  expect_slopes(bias, found.bias, 11);
}

TEST(LowRankGradient, LargeScoresOverflowNothing) {
  GradientCase world = make_gradient_case();
  for (float& value : world.predictor.bias) value *= 1000;
  Team team({.workers = 1});
  LowRank found;
  const double loss = LowRankGradient(team).compute(world.predictor, world.batch(), kWeights, found);
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_GT(loss, 100);
  for (const float slope : found.bias) EXPECT_TRUE(std::isfinite(slope));
}

TEST(LowRankGradient, HasTheSameBitsWithAnyNumberOfThreads) {
  const GradientCase world = make_gradient_case(290, 1300);  // enough for threads to be woken
  LowRank of_one;
  Team one({.workers = 1});
  const double loss = LowRankGradient(one).compute(world.predictor, world.batch(), kWeights, of_one);
  for (const uint32_t threads : {2U, 3U}) {
    Team team({.workers = threads});
    LowRankGradient gradients(team);
    LowRank found;
    for (int again = 0; again < 20; ++again) {
      EXPECT_EQ(gradients.compute(world.predictor, world.batch(), kWeights, found), loss);
      ASSERT_EQ(found.a, of_one.a);
      ASSERT_EQ(found.b, of_one.b);
      ASSERT_EQ(found.bias, of_one.bias);
    }
    EXPECT_GT(team.launches(), 0U);
  }
}

}  // namespace
}  // namespace tierd
