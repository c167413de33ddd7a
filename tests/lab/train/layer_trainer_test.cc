// Tests the trainer on a synthetic layer whose inputs are near a few directions, as those of real layers are.
#include "tools/lab/train/layer_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/random.h"
#include "tools/lab/train/quality.h"

namespace tierd {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kLayerWidth = 64;
constexpr uint32_t kLayerNeurons = 256;
constexpr uint32_t kDirections = 12;
constexpr uint32_t kTrainingTokens = 2000;
constexpr uint32_t kHeldOut = 300;  // after kTrainingTokens
constexpr uint32_t kTrainedRank = 4;

struct Layer {
  Decision decision;
  std::vector<float> x, contributions;
};

Layer make_layer() {
  Random random(3);
  Layer layer;
  layer.decision.weight.resize(kLayerNeurons * kLayerWidth);
  for (float& value : layer.decision.weight) value = random.symmetric();
  layer.decision.bias.assign(kLayerNeurons, -12.0F);  // few neurons are active
  std::vector<float> directions(kDirections * kLayerWidth);
  for (float& value : directions) value = random.symmetric();
  for (uint32_t t = 0; t < kTrainingTokens + kHeldOut; ++t) {
    std::vector<float> x(kLayerWidth);
    for (float& value : x) value = 0.5F + 0.1F * random.symmetric();
    for (uint32_t k = 0; k < kDirections; ++k) {
      const float along = 4 * random.symmetric() / static_cast<float>(k + 1);
      for (uint32_t i = 0; i < kLayerWidth; ++i) x[i] += along * directions[k * kLayerWidth + i];
    }
    for (uint32_t n = 0; n < kLayerNeurons; ++n) {
      const float* const row = layer.decision.weight.data() + n * kLayerWidth;
      const float z = std::inner_product(x.begin(), x.end(), row, layer.decision.bias[n]);
      layer.contributions.push_back(std::max(0.0F, z));
    }
    layer.x.insert(layer.x.end(), x.begin(), x.end());
  }
  return layer;
}

const Layer& made_up() {
  static const Layer layer = make_layer();
  return layer;
}

class LayerTrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    const Layer& layer = made_up();
    x_ = layer.x;
    contributions_ = layer.contributions;
    task_.layer = 5;
    task_.d_model = kLayerWidth;
    task_.d_ff = kLayerNeurons;
    task_.rank = kTrainedRank;
    task_.tokens = kTrainingTokens;
    task_.decision = layer.decision;
    task_.read = [this](std::span<const uint32_t> tokens, std::span<float> x,
                        std::span<float> contributions) -> Status {
      for (size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_LT(tokens[i], kTrainingTokens);  // the tokens held out are never read
        EXPECT_TRUE(i == 0 || tokens[i] > tokens[i - 1]);
        std::copy_n(x_.data() + tokens[i] * kLayerWidth, kLayerWidth, x.data() + i * kLayerWidth);
        std::copy_n(contributions_.data() + tokens[i] * kLayerNeurons, kLayerNeurons,
                    contributions.data() + i * kLayerNeurons);
      }
      return {};
    };
    task_.progress = [](uint32_t, uint32_t, double) {};
    options_.threads = 1;
    options_.batch = 64;
  }

  Result<LowRank> train(uint32_t epochs) {
    options_.epochs = epochs;
    return train_layer(task_, options_);
  }
  Quality held_out(const LowRank& predictor) const {
    Quality quality{.threshold = 0.5};
    std::vector<float> scores(kHeldOut * kLayerNeurons);
    score(predictor, std::span(x_).subspan(kTrainingTokens * kLayerWidth), scores);
    count(quality, 0, scores, std::span(contributions_).subspan(kTrainingTokens * kLayerNeurons));
    return quality;
  }

  LayerTask task_;
  TrainOptions options_;
  std::vector<float> x_, contributions_;
};

TEST_F(LayerTrainerTest, TrainingFindsWhatTheStartMisses) {
  const auto start = train(0);
  ASSERT_TRUE(start.ok()) << start.error().line();
  const auto trained = train(4);
  ASSERT_TRUE(trained.ok()) << trained.error().line();
  EXPECT_EQ(trained->a.size(), kTrainedRank * kLayerWidth);
  EXPECT_EQ(trained->b.size(), kLayerNeurons * kTrainedRank);
  EXPECT_EQ(trained->bias.size(), kLayerNeurons);
  const Quality before = held_out(*start);
  const Quality after = held_out(*trained);
  EXPECT_GT(before.active_percent(), 2);
  EXPECT_LT(before.active_percent(), 20);
  // A false negative weighs more than a false positive, since few pairs are active.
  EXPECT_LT(after.missed_percent(), before.missed_percent() / 5);
  EXPECT_LT(after.missed_mass_percent(), before.missed_mass_percent() / 5);
  EXPECT_LT(after.missed_percent() + after.spurious_percent(),
            (before.missed_percent() + before.spurious_percent()) / 2);
}

TEST_F(LayerTrainerTest, AtFullRankTheStartIsTheDecision) {
  task_.rank = kLayerWidth;
  const auto start = train(0);
  ASSERT_TRUE(start.ok()) << start.error().line();
  EXPECT_LT(held_out(*start).missed_percent(), 0.1);
  EXPECT_LT(held_out(*start).spurious_percent(), 0.1);
}

TEST_F(LayerTrainerTest, TheSameSeedGivesTheSameBitsOnAnyNumberOfThreads) {
  const auto first = train(1);
  options_.threads = 2;
  const auto second = train(1);
  options_.seed = 2;
  const auto other = train(1);
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_EQ(first->a, second->a);
  EXPECT_EQ(first->b, second->b);
  EXPECT_EQ(first->bias, second->bias);
  EXPECT_NE(first->a, other->a);
}

TEST_F(LayerTrainerTest, EveryTokenOnceAnEpoch) {
  std::vector<uint32_t> seen(kTrainingTokens);
  const ReadRows read = task_.read;
  task_.read = [&](std::span<const uint32_t> tokens, std::span<float> x, std::span<float> contributions) {
    for (const uint32_t token : tokens) ++seen[token];
    return read(tokens, x, contributions);
  };
  std::vector<uint32_t> ended;
  double loss = 0;
  task_.progress = [&](uint32_t epoch, uint32_t tokens, double mean) {
    if (tokens == kTrainingTokens) ended.push_back(epoch);
    loss = mean;
  };
  options_.batch = 271;
  ASSERT_TRUE(train(2).ok());
  EXPECT_THAT(seen, Each(3U));  // once to measure them, then once an epoch
  EXPECT_THAT(ended, ElementsAre(0, 1));
  EXPECT_GT(loss, 0);
}

TEST_F(LayerTrainerTest, ALayerInWhichNothingHappens) {
  std::fill(x_.begin(), x_.end(), 0.25F);
  std::fill(contributions_.begin(), contributions_.end(), 0.0F);
  const auto quiet = train(1);
  ASSERT_TRUE(quiet.ok()) << quiet.error().line();
  EXPECT_EQ(held_out(*quiet).predicted, 0U);
  std::fill(task_.decision.weight.begin(), task_.decision.weight.end(), 0.0F);
  EXPECT_TRUE(train(1).ok());
}

TEST_F(LayerTrainerTest, ErrorsComeBack) {
  task_.read = [](std::span<const uint32_t>, std::span<float>, std::span<float>) -> Status {
    return Error{Code::io_error, "activations", "cannot be read"};
  };
  EXPECT_EQ(train(1).code(), Code::io_error);
}

TEST_F(LayerTrainerTest, ARateThatIsTooHighIsNamed) {
  options_.learning_rate = 1e30;
  const auto trained = train(1);
  ASSERT_EQ(trained.code(), Code::invalid_argument);
  EXPECT_THAT(trained.error().line(),
              HasSubstr("--learning-rate: in layer 5, epoch 1, the loss is not a number"));
}

}  // namespace
}  // namespace tierd
