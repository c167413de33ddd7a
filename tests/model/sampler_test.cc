#include "core/model/sampler.h"

#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

constexpr int kDraws = 40000;

SamplerOptions all_off() {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 7};
}

std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// How often each token is drawn.
std::map<uint32_t, double> frequencies(const SamplerOptions& options, const std::vector<float>& logits) {
  auto sampler = Sampler::create(options);
  std::map<uint32_t, double> result;
  for (int i = 0; i < kDraws; ++i) result[*sampler->sample(logits)] += 1.0 / kDraws;
  return result;
}

// Three standard deviations and a half of a frequency near one half.
constexpr double kTolerance = 0.009;

TEST(Sampler, GreedyTakesTheHighestAndTheLowestIdOfEquals) {
  SamplerOptions options = all_off();
  options.temperature = 0;
  auto sampler = Sampler::create(options);
  EXPECT_EQ(*sampler->sample(std::vector<float>{-1, 3, 2, 3}), 1u);
  EXPECT_EQ(*sampler->sample(std::vector<float>{-5}), 0u);
}

TEST(Sampler, DrawsByProbability) {
  auto f = frequencies(all_off(), logits_of({0.1, 0.6, 0.3}));
  EXPECT_NEAR(f[0], 0.1, kTolerance);
  EXPECT_NEAR(f[1], 0.6, kTolerance);
  EXPECT_NEAR(f[2], 0.3, kTolerance);
}

TEST(Sampler, TemperatureFlattensOrSharpens) {
  SamplerOptions options = all_off();
  options.temperature = 0.5f;  // squares the probabilities
  auto f = frequencies(options, logits_of({0.25, 0.75}));
  EXPECT_NEAR(f[0], 0.1, kTolerance);
  options.temperature = 1e6f;
  f = frequencies(options, logits_of({0.25, 0.75}));
  EXPECT_NEAR(f[0], 0.5, kTolerance);
}

TEST(Sampler, TopKKeepsTheMostProbableAndTheLowestIdOfEquals) {
  SamplerOptions options = all_off();
  options.top_k = 2;
  auto f = frequencies(options, logits_of({0.2, 0.1, 0.5, 0.2}));
  EXPECT_THAT(f, testing::SizeIs(2));
  EXPECT_NEAR(f[0], 2.0 / 7, kTolerance);
  EXPECT_NEAR(f[2], 5.0 / 7, kTolerance);
  options.top_k = 1;
  EXPECT_THAT(frequencies(options, {1, 1, 1}), testing::ElementsAre(testing::Key(0u)));
  options.top_k = 1000;
  EXPECT_THAT(frequencies(options, {1, 1, 1}), testing::SizeIs(3));
}

TEST(Sampler, TopPKeepsTheFewestThatReachTheSum) {
  SamplerOptions options = all_off();
  const auto logits = logits_of({0.5, 0.3, 0.15, 0.05});
  options.top_p = 0.7f;
  auto f = frequencies(options, logits);
  EXPECT_THAT(f, testing::ElementsAre(testing::Key(0u), testing::Key(1u)));
  EXPECT_NEAR(f[0], 0.625, kTolerance);
  options.top_p = 0.01f;
  EXPECT_THAT(frequencies(options, logits), testing::ElementsAre(testing::Key(0u)));
}

TEST(Sampler, MinPIsRelativeToTheMostProbable) {
  SamplerOptions options = all_off();
  options.min_p = 0.25f;
  auto f = frequencies(options, logits_of({0.1, 0.6, 0.3}));
  EXPECT_THAT(f, testing::ElementsAre(testing::Key(1u), testing::Key(2u)));
  EXPECT_NEAR(f[1], 2.0 / 3, kTolerance);
}

TEST(Sampler, FiltersSeeProbabilitiesBeforeTemperature) {
  SamplerOptions options = all_off();
  options.top_p = 0.7f;
  options.temperature = 1e6f;  // after top_p the two that are left become equal
  auto f = frequencies(options, logits_of({0.5, 0.3, 0.15, 0.05}));
  EXPECT_THAT(f, testing::SizeIs(2));
  EXPECT_NEAR(f[0], 0.5, kTolerance);
}

TEST(Sampler, TheSeedDecides) {
  const std::vector<float> logits(1000, 0.0f);
  const auto draw = [&](uint64_t seed) {
    SamplerOptions options = all_off();
    options.seed = seed;
    auto sampler = Sampler::create(options);
    std::vector<uint32_t> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(*sampler->sample(logits));
    return tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, SurvivesExtremeLogits) {
  const float huge = std::numeric_limits<float>::max();
  EXPECT_THAT(frequencies(all_off(), {-huge, huge, -huge}), testing::ElementsAre(testing::Key(1u)));
  SamplerOptions cold = all_off();
  cold.temperature = std::numeric_limits<float>::min();
  EXPECT_THAT(frequencies(cold, {1, 2, huge}), testing::ElementsAre(testing::Key(2u)));
}

TEST(Sampler, NamesALogitThatIsNotFinite) {
  for (const float temperature : {0.0f, 1.0f}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      SamplerOptions options = all_off();
      options.temperature = temperature;
      const auto result = Sampler::create(options)->sample(std::vector<float>{0, 0, bad, 0});
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.code(), Code::corrupt);
      EXPECT_THAT(result.error().line(), testing::HasSubstr("the logit of token 2 is"));
    }
  }
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  const auto refused = [](auto&& change) {
    SamplerOptions options = all_off();
    change(options);
    const auto result = Sampler::create(options);
    return result.ok() ? "accepted" : result.error().line();
  };
  EXPECT_THAT(refused([](auto& o) { o.temperature = -1; }), testing::StartsWith("temperature: -1 found"));
  EXPECT_THAT(refused([](auto& o) { o.temperature = NAN; }), testing::StartsWith("temperature: nan found"));
  EXPECT_THAT(refused([](auto& o) { o.top_p = 0; }), testing::StartsWith("top_p: 0 found"));
  EXPECT_THAT(refused([](auto& o) { o.top_p = 1.5f; }), testing::StartsWith("top_p: 1.5 found"));
  EXPECT_THAT(refused([](auto& o) { o.min_p = -0.1f; }), testing::StartsWith("min_p: -0.1 found"));
}

}  // namespace
}  // namespace tierd
