#include "tools/lab/planted/layer_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/lab/planted/small_planted.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// The figures of the study that the profile comes from, for 32 layers.
TEST(LayerProfile, GivesTheStudysNumbers) {
  struct Expected {
    uint32_t layer;
    double active, noise, spread, mean, margin;
  };
  const PlantedProfile profile = flash_profile();
  const auto shares = active_shares(profile, 32);
  ASSERT_TRUE(shares.ok()) << shares.error().line();
  for (const Expected& expected : {Expected{0, 0.0156, 0.6162, 0.9451, 2.9645, 1.2668},
                                   {15, 0.0266, 0.5603, 0.9939, 2.7258, 1.0189},
                                   {31, 0.0536, 0.4779, 1.0541, 2.3406, 0.7106}}) {
    SCOPED_TRACE(expected.layer);
    EXPECT_NEAR((*shares)[expected.layer], expected.active, 1e-9);
    const LayerProfile layer = layer_profile((*shares)[expected.layer], profile);
    EXPECT_NEAR(layer.noise, expected.noise, 1e-4);
    EXPECT_NEAR(layer.spread, expected.spread, 1e-4);
    EXPECT_NEAR(layer.mean, expected.mean, 1e-4);
    EXPECT_NEAR(layer.margin, expected.margin, 1e-4);
  }
}

TEST(LayerProfile, TheCurveHasItsMean) {
  const PlantedProfile profile = flash_profile();
  for (const uint32_t layers : {3u, 4u, 8u, 32u, 33u}) {
    const auto shares = active_shares(profile, layers);
    ASSERT_TRUE(shares.ok()) << shares.error().line();
    EXPECT_NEAR(std::accumulate(shares->begin(), shares->end(), 0.0) / layers, 0.0330, 1e-9) << layers;
    EXPECT_TRUE(std::is_sorted(shares->begin(), shares->end())) << layers;
  }
  // For l = 0 to 15 the study has 1.56 + 1.10 (l / 15)^0.64598 %.
  EXPECT_NEAR((*active_shares(profile, 32))[7], 0.0156 + 0.0110 * std::pow(7.0 / 15, 0.64598), 1e-6);
}

TEST(LayerProfile, RefusesWhatNoCurveGives) {
  PlantedProfile profile = flash_profile();
  EXPECT_THAT(active_shares(profile, 2).error().line(), HasSubstr("at least 3 layers, found 2"));
  profile.mean = 0.2;
  EXPECT_THAT(active_shares(profile, 32).error().line(), HasSubstr("has the mean 0.2, expected 0.0"));
}

TEST(LayerProfile, RanksOfTheLastEighthAreLarger) {
  const PlantedProfile profile = flash_profile();
  EXPECT_EQ(predictor_rank(profile, 27, 32, 4096), 128u);
  EXPECT_EQ(predictor_rank(profile, 28, 32, 4096), 1024u);
  EXPECT_EQ(predictor_rank(profile, 6, 8, 4096), 128u);
  EXPECT_EQ(predictor_rank(profile, 7, 8, 4096), 1024u);
  EXPECT_EQ(predictor_rank(profile, 7, 8, 2048), 512u);  // never more than a quarter of the width
  EXPECT_EQ(predictor_rank(profile, 0, 8, 256), 64u);
}

}  // namespace
}  // namespace tierd
