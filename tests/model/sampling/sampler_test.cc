#include "core/model/sampling/sampler.h"

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

// Returns how often each token is drawn.
std::map<uint32_t, double> frequencies(const SamplerOptions& options, const std::vector<float>& logits) {
  auto sampler = Sampler::create(options);
  std::map<uint32_t, double> result;
  for (int i = 0; i < kDraws; ++i) result[*sampler->sample(logits)] += 1.0 / kDraws;
  return result;
}

// 3.5 standard deviations of a frequency near one half.
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

// After temperature, a nucleus is one of the flattened probabilities.
TEST(Sampler, SamplersFollowEachOtherAsTheyAreNamed) {
  SamplerOptions options = all_off();
  options.temperature = 100;
  options.top_p = 0.7f;
  const std::vector<float> logits = logits_of({0.8, 0.15, 0.05});
  options.samplers = {SamplerStep::top_p, SamplerStep::temperature};
  EXPECT_EQ(frequencies(options, logits).size(), 1u) << "the most probable one has .8";
  options.samplers = {SamplerStep::temperature, SamplerStep::top_p};
  EXPECT_EQ(frequencies(options, logits).size(), 3u) << "two have .67";
  options.samplers = {SamplerStep::top_p};
  options.top_p = 0.9f;
  auto f = frequencies(options, logits);
  EXPECT_NEAR(f[0], 0.8 / 0.95, kTolerance) << "no temperature";
  options.samplers = {};
  EXPECT_NEAR(frequencies(options, logits)[2], 0.05, kTolerance) << "nothing";
}

// top_k and top_n_sigma see only the tokens left by earlier samplers.
TEST(Sampler, TopKAndSigmaSeeWhatIsLeft) {
  SamplerOptions options = all_off();
  options.top_k = 2;
  options.min_p = 0.5f;
  options.xtc_probability = 1;
  options.xtc_threshold = 0.25f;
  const std::vector<float> logits = logits_of({0.36, 0.34, 0.2, 0.1});
  options.samplers = {SamplerStep::top_k, SamplerStep::xtc};
  EXPECT_THAT(frequencies(options, logits), testing::ElementsAre(testing::Key(1)));
  options.samplers = {SamplerStep::xtc, SamplerStep::top_k};
  EXPECT_THAT(frequencies(options, logits), testing::ElementsAre(testing::Key(1), testing::Key(2)));
  options.top_k = 0;
  options.top_n_sigma = 0.9f;
  // The deviation of the two highest is so small that it leaves one; that of all four is .5 and leaves both.
  options.top_k = 2;
  options.samplers = {SamplerStep::top_k, SamplerStep::top_n_sigma};
  EXPECT_EQ(frequencies(options, logits).size(), 1u);
  options.samplers = {SamplerStep::top_n_sigma, SamplerStep::top_k};
  EXPECT_EQ(frequencies(options, logits).size(), 2u);
}

TEST(Sampler, PenaltiesThatAreNotNamedDoNothing) {
  SamplerOptions options = all_off();
  options.penalties.presence_penalty = 100;
  options.temperature = 0;
  options.samplers = {SamplerStep::temperature};
  auto sampler = Sampler::create(options);
  sampler->accept(1);
  EXPECT_EQ(*sampler->sample(std::vector<float>{1, 2}), 1u);
  options.samplers = default_samplers();
  auto penalized = Sampler::create(options);
  penalized->accept(1);
  EXPECT_EQ(*penalized->sample(std::vector<float>{1, 2}), 0u);
}

TEST(SamplerChain, IsReadAsLlamaCppReadsIt) {
  using S = SamplerStep;
  const auto read = [](std::string_view text) {
    const auto steps = parse_samplers(text, "--samplers");
    EXPECT_TRUE(steps.ok()) << steps.error().line();
    return steps.ok() ? *steps : std::vector<S>{};
  };
  EXPECT_EQ(read("penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"), default_samplers());
  EXPECT_EQ(read("edskypmxt"), default_samplers());
  EXPECT_EQ(read(samplers_text(default_samplers())), default_samplers());
  EXPECT_EQ(read("temp;nucleus"), (std::vector<S>{S::temperature, S::top_p}));
  EXPECT_EQ(read("tp"), (std::vector<S>{S::temperature, S::top_p}));
  EXPECT_EQ(read("xtc"), (std::vector<S>{S::xtc}));
  EXPECT_EQ(read(""), std::vector<S>{});
  EXPECT_EQ(read("top-k;"), std::vector<S>{S::top_k});
  const auto refused = [](std::string_view text) {
    return parse_samplers(text, "--samplers").error().line();
  };
  EXPECT_THAT(refused("top_k;mirostat"),
              testing::HasSubstr("--samplers: 'mirostat' is not a sampler; expected names from"));
  EXPECT_THAT(refused("top_k;top_k"), testing::HasSubstr("'top_k' is named twice"));
  EXPECT_THAT(refused("kk"), testing::HasSubstr("named twice"));
  EXPECT_THAT(refused("top_k;penalties"), testing::HasSubstr("penalties must precede all others"));
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

TEST(Sampler, TypicalKeepsThoseOfAverageInformation) {
  SamplerOptions options = all_off();
  options.typical_p = 0.5f;
  // Entropy 1.157 nats: of 0.51 (0.67 nats), 0.25 (1.39), 0.12 twice (2.12) the second is the nearest.
  auto f = frequencies(options, logits_of({0.51, 0.25, 0.12, 0.12}));
  EXPECT_THAT(f, testing::ElementsAre(testing::Key(0u), testing::Key(1u)));
  options.typical_p = 0.2f;
  EXPECT_THAT(frequencies(options, logits_of({0.51, 0.25, 0.12, 0.12})),
              testing::ElementsAre(testing::Key(1u)));
}

TEST(Sampler, TopNSigmaIsMeasuredFromTheHighest) {
  SamplerOptions options = all_off();
  const std::vector<float> logits = {10, 9, 0, 1, 0, 1, 0, 1};  // standard deviation 4.02
  options.top_n_sigma = 1;
  EXPECT_THAT(frequencies(options, logits), testing::ElementsAre(testing::Key(0u), testing::Key(1u)));
  options.top_n_sigma = 0.2f;
  EXPECT_THAT(frequencies(options, logits), testing::ElementsAre(testing::Key(0u)));
}

TEST(Sampler, XtcLeavesOutTheMostProbableButTheLastAboveItsThreshold) {
  SamplerOptions options = all_off();
  options.xtc_probability = 1;
  options.xtc_threshold = 0.2f;
  const auto logits = logits_of({0.4, 0.3, 0.25, 0.05});
  auto f = frequencies(options, logits);
  EXPECT_THAT(f, testing::ElementsAre(testing::Key(2u), testing::Key(3u)));
  EXPECT_NEAR(f[2], 0.25 / 0.3, kTolerance);
  options.xtc_threshold = 0.35f;  // a single token is kept
  EXPECT_THAT(frequencies(options, logits), testing::SizeIs(4));
  options.xtc_threshold = 0.2f;
  options.xtc_probability = 0.5f;
  f = frequencies(options, logits);
  EXPECT_NEAR(f[0], 0.5 * 0.4, kTolerance);
  options.xtc_threshold = 0.6f;
  EXPECT_NEAR(frequencies(options, logits)[0], 0.4, kTolerance);
}

TEST(Sampler, BiasIsAddedAndForbids) {
  SamplerOptions options = all_off();
  options.temperature = 0;
  options.logit_bias = {{0, 3.0f}, {1, -INFINITY}, {77, 5.0f}};
  auto sampler = Sampler::create(options);
  EXPECT_EQ(*sampler->sample(std::vector<float>{1, 9, 3}), 0u);
  EXPECT_EQ(*sampler->sample(std::vector<float>{1, 9, 5}), 2u);
  options.temperature = 1;
  EXPECT_THAT(frequencies(options, {1, 90, 3}), testing::ElementsAre(testing::Key(0u), testing::Key(2u)));
  options.logit_bias = {{0, -INFINITY}, {1, -INFINITY}};
  const auto none = Sampler::create(options)->sample(std::vector<float>{1, 2});
  EXPECT_EQ(none.error().line(), "logit_bias: forbids every token");
}

TEST(Sampler, WhatClientsAskForNeverMakesALogitInfinite) {
  const float huge = std::numeric_limits<float>::max();
  for (const float top_p : {1.0f, 0.95f, 0.0f}) {
    SamplerOptions options = all_off();
    options.top_p = top_p;
    options.logit_bias = {{1, huge}, {1, huge}, {1, huge}, {2, huge}, {2, huge}, {2, -INFINITY}, {2, huge}};
    options.penalties = {
        .repeat_last_n = -1, .repeat_penalty = 1e-38f, .presence_penalty = -huge, .frequency_penalty = -huge};
    auto sampler = Sampler::create(options);
    ASSERT_TRUE(sampler.ok());
    for (int i = 0; i < 3; ++i) sampler->accept(1), sampler->accept(2);
    for (int i = 0; i < 20; ++i) EXPECT_LT(*sampler->sample(std::vector<float>{3, 2, 1}), 2u);
    options.penalties.frequency_penalty = huge;
    auto other = Sampler::create(options);
    for (int i = 0; i < 20; ++i) EXPECT_LT(*other->sample(std::vector<float>{3, 2, 1}), 2u);
  }
}

TEST(Sampler, ATopPOfNothingKeepsOne) {
  SamplerOptions options = all_off();
  options.top_p = 0;
  EXPECT_THAT(frequencies(options, {1, 2, 3}), testing::ElementsAre(testing::Key(2u)));
}

TEST(Sampler, PenaltiesCountThePromptAndWhatWasSampled) {
  SamplerOptions options = all_off();
  options.temperature = 0;
  options.penalties.presence_penalty = 2;
  auto sampler = Sampler::create(options);
  sampler->accept(2);
  const std::vector<float> logits = {0, 1, 2.5f};
  EXPECT_EQ(*sampler->sample(logits), 1u);  // 2 has 0.5
  EXPECT_EQ(*sampler->sample(logits), 2u);  // now 1 has -1
  EXPECT_EQ(*sampler->sample(logits), 2u);  // each counts only once
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
  EXPECT_THAT(refused([](auto& o) { o.top_p = -1; }), testing::StartsWith("top_p: -1 found"));
  EXPECT_THAT(refused([](auto& o) { o.top_p = 1.5f; }), testing::StartsWith("top_p: 1.5 found"));
  EXPECT_THAT(refused([](auto& o) { o.min_p = -0.1f; }), testing::StartsWith("min_p: -0.1 found"));
  EXPECT_THAT(refused([](auto& o) { o.typical_p = 0; }), testing::StartsWith("typical_p: 0 found"));
  EXPECT_THAT(refused([](auto& o) { o.top_n_sigma = NAN; }), testing::StartsWith("top_n_sigma: nan found"));
  EXPECT_THAT(refused([](auto& o) { o.xtc_probability = 2; }),
              testing::StartsWith("xtc_probability: 2 found"));
  EXPECT_THAT(refused([](auto& o) { o.xtc_threshold = -1; }), testing::StartsWith("xtc_threshold: -1 found"));
  EXPECT_THAT(refused([](auto& o) { o.penalties.repeat_last_n = -2; }),
              testing::StartsWith("repeat_last_n: -2"));
  EXPECT_THAT(refused([](auto& o) { o.penalties.repeat_penalty = 0; }),
              testing::StartsWith("repeat_penalty: 0"));
  EXPECT_THAT(refused([](auto& o) { o.penalties.presence_penalty = NAN; }),
              testing::StartsWith("presence_penalty: nan"));
  EXPECT_THAT(refused([](auto& o) { o.penalties.frequency_penalty = INFINITY; }),
              testing::StartsWith("frequency_penalty: inf"));
  EXPECT_THAT(refused([](auto& o) {
                o.logit_bias = {{3, NAN}};
              }),
              testing::StartsWith("logit_bias: nan found"));
}

}  // namespace
}  // namespace tierd
