#include "tools/lab/train/quality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/random.h"
#include "tests/base/temp_folder.h"
#include "tests/lab/train/activations_builder.h"
#include "tools/lab/train/kept_mass.h"

namespace tierd {
namespace {

constexpr uint32_t kQualityTokens = 300;  // more than one read takes
constexpr uint32_t kQualityWidth = 6;
constexpr uint32_t kQualityNeurons = 20;
constexpr uint32_t kQualityRank = 3;

std::vector<float> drawn_halves(Random& random, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = f16_to_f32(f32_to_f16(random.symmetric()));
  return values;
}

struct QualityCase {
  LowRank predictor;
  std::vector<float> x, contributions;
};

QualityCase make_quality_case() {
  Random random(7);
  QualityCase world;
  world.predictor.rank = kQualityRank;
  world.predictor.d_model = kQualityWidth;
  world.predictor.d_ff = kQualityNeurons;
  world.predictor.a = drawn_halves(random, kQualityRank * kQualityWidth);
  world.predictor.b = drawn_halves(random, kQualityNeurons * kQualityRank);
  world.predictor.bias = drawn_halves(random, kQualityNeurons);
  world.x = drawn_halves(random, kQualityTokens * kQualityWidth);
  world.contributions = drawn_halves(random, kQualityTokens * kQualityNeurons);
  for (float& value : world.contributions) value = std::max(value, 0.0F);
  return world;
}

// Computes the definition in plain loops.
double probability(const QualityCase& world, uint32_t token, uint32_t neuron) {
  double score = world.predictor.bias[neuron];
  for (uint32_t r = 0; r < kQualityRank; ++r) {
    double hidden = 0;
    for (uint32_t i = 0; i < kQualityWidth; ++i) {
      hidden += world.predictor.a[r * kQualityWidth + i] * world.x[token * kQualityWidth + i];
    }
    score += world.predictor.b[neuron * kQualityRank + r] * hidden;
  }
  return 1 / (1 + std::exp(-score));
}

Quality naive(const QualityCase& world, uint32_t first, double threshold) {
  Quality quality;
  for (uint32_t t = first; t < kQualityTokens; ++t) {
    for (uint32_t n = 0; n < kQualityNeurons; ++n) {
      const float contribution = world.contributions[t * kQualityNeurons + n];
      const bool active = contribution != 0;
      const bool predicted = probability(world, t, n) > threshold;
      quality.pairs += 1;
      quality.active += active ? 1 : 0;
      quality.predicted += predicted ? 1 : 0;
      quality.missed += active && !predicted ? 1 : 0;
      quality.spurious += !active && predicted ? 1 : 0;
      quality.mass += contribution;
      quality.missed_mass += predicted ? 0 : contribution;
    }
  }
  return quality;
}

TEST(QualityTest, CountsWhatTheDefinitionCounts) {
  const QualityCase world = make_quality_case();
  const TempFolder folder;
  SafetensorsBuilder file;
  file.add("layers.0.ffn.x", "F16", {kQualityTokens, kQualityWidth}, f16_bytes(world.x));
  file.add("layers.0.ffn.contribution", "F16", {kQualityTokens, kQualityNeurons},
           f16_bytes(world.contributions));
  const auto activations =
      Activations::open(folder.write("a", file.bytes()), one_layer(kQualityWidth, kQualityNeurons));
  ASSERT_TRUE(activations.ok()) << activations.error().line();

  const std::vector<double> thresholds = {0.3, 0.5, 0.7};
  for (const uint32_t first : {0U, 30U, kQualityTokens - 1}) {
    const auto qualities = evaluate(world.predictor, *activations, 0, first, thresholds);
    ASSERT_TRUE(qualities.ok()) << qualities.error().line();
    ASSERT_EQ(qualities->size(), thresholds.size());
    for (size_t i = 0; i < thresholds.size(); ++i) {
      const Quality& quality = (*qualities)[i];
      const Quality expected = naive(world, first, thresholds[i]);
      EXPECT_EQ(quality.threshold, thresholds[i]);
      EXPECT_EQ(quality.pairs, expected.pairs);
      EXPECT_EQ(quality.active, expected.active);
      EXPECT_EQ(quality.predicted, expected.predicted);
      EXPECT_EQ(quality.missed, expected.missed);
      EXPECT_EQ(quality.spurious, expected.spurious);
      EXPECT_NEAR(quality.mass, expected.mass, 1e-6);
      EXPECT_NEAR(quality.missed_mass, expected.missed_mass, 1e-6);
    }
  }
}

TEST(QualityTest, KeptMassIsThatOfTheHighestScores) {
  const QualityCase world = make_quality_case();
  const TempFolder folder;
  SafetensorsBuilder file;
  file.add("layers.0.ffn.x", "F16", {kQualityTokens, kQualityWidth}, f16_bytes(world.x));
  file.add("layers.0.ffn.contribution", "F16", {kQualityTokens, kQualityNeurons},
           f16_bytes(world.contributions));
  const auto activations =
      Activations::open(folder.write("a", file.bytes()), one_layer(kQualityWidth, kQualityNeurons));
  ASSERT_TRUE(activations.ok()) << activations.error().line();
  constexpr uint32_t kFirst = 10;
  const auto kept = kept_mass(world.predictor, *activations, 0, kFirst);
  ASSERT_TRUE(kept.ok()) << kept.error().line();
  ASSERT_EQ(kept->size(), kKeptLevels);
  std::vector<double> mass(kKeptLevels, 0);
  for (uint32_t t = kFirst; t < kQualityTokens; ++t) {
    std::vector<std::pair<double, float>> ranked;
    for (uint32_t n = 0; n < kQualityNeurons; ++n)
      ranked.emplace_back(probability(world, t, n), world.contributions[t * kQualityNeurons + n]);
    std::ranges::sort(ranked, std::greater<>(), &std::pair<double, float>::first);
    for (uint32_t level = 0; level < kKeptLevels; ++level) {
      for (uint32_t i = 0; i < kQualityNeurons * level / (kKeptLevels - 1); ++i)
        mass[level] += ranked[i].second;
    }
  }
  EXPECT_EQ(kept->front(), 0);
  EXPECT_EQ(kept->back(), 1);
  for (uint32_t level = 0; level < kKeptLevels; ++level)
    EXPECT_NEAR((*kept)[level], mass[level] / mass.back(), 1e-5) << level;
}

TEST(QualityTest, AShareIsThatOfTheHighestScores) {
  const QualityCase world = make_quality_case();
  const TempFolder folder;
  SafetensorsBuilder file;
  // The layer that is judged is the one after the layer whose input the scores are computed from.
  file.add("layers.0.ffn.x", "F16", {kQualityTokens, kQualityWidth}, f16_bytes(world.x));
  file.add("layers.0.ffn.contribution", "F16", {kQualityTokens, kQualityNeurons},
           f16_bytes(world.contributions));
  file.add("layers.1.ffn.x", "F16", {kQualityTokens, kQualityWidth},
           f16_bytes(std::vector<float>(world.x.size(), 1)));
  file.add("layers.1.ffn.contribution", "F16", {kQualityTokens, kQualityNeurons},
           f16_bytes(world.contributions));
  ModelConfig config = one_layer(kQualityWidth, kQualityNeurons);
  config.n_layers = 2;
  const auto activations = Activations::open(folder.write("a", file.bytes()), config);
  ASSERT_TRUE(activations.ok()) << activations.error().line();

  for (const uint32_t kept : {0U, 1U, 7U, kQualityNeurons}) {
    Quality expected;
    for (uint32_t t = 0; t < kQualityTokens; ++t) {
      std::vector<double> sorted;
      for (uint32_t n = 0; n < kQualityNeurons; ++n) sorted.push_back(probability(world, t, n));
      std::ranges::sort(sorted, std::greater<>());
      for (uint32_t n = 0; n < kQualityNeurons; ++n) {
        const bool active = world.contributions[t * kQualityNeurons + n] != 0;
        const bool predicted = kept > 0 && probability(world, t, n) >= sorted[kept - 1];
        expected.predicted += predicted ? 1 : 0;
        expected.missed += active && !predicted ? 1 : 0;
      }
    }
    const auto found =
        evaluate_share(world.predictor, *activations, 1, 0, static_cast<double>(kept) / kQualityNeurons);
    ASSERT_TRUE(found.ok()) << found.error().line();
    EXPECT_EQ(found->predicted, uint64_t{kept} * kQualityTokens);
    EXPECT_EQ(found->predicted, expected.predicted);
    EXPECT_EQ(found->missed, expected.missed);
    EXPECT_EQ(found->pairs, uint64_t{kQualityTokens} * kQualityNeurons);
  }
}

TEST(QualityTest, Percentages) {
  Quality quality{.threshold = 0.5};
  EXPECT_EQ(quality.active_percent(), 0);
  EXPECT_EQ(quality.missed_percent(), 0);
  EXPECT_EQ(quality.missed_mass_percent(), 0);
  const std::vector<float> scores = {1, -1, 1, -1, 0};
  const std::vector<float> contributions = {3, 1, 0, 0, 0};
  count(quality, 0, scores, contributions);
  EXPECT_DOUBLE_EQ(quality.active_percent(), 40);
  EXPECT_DOUBLE_EQ(quality.predicted_percent(), 40);
  EXPECT_DOUBLE_EQ(quality.missed_percent(), 50);
  EXPECT_DOUBLE_EQ(quality.recall_percent(), 50);
  EXPECT_DOUBLE_EQ(quality.spurious_percent(), 100.0 / 3);
  EXPECT_DOUBLE_EQ(quality.missed_mass_percent(), 25);
}

}  // namespace
}  // namespace tierd
