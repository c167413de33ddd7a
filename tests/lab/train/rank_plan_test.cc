#include "tools/lab/train/rank_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig four_layers() {
  ModelConfig config;
  config.n_layers = 4;
  config.d_model = 256;
  config.d_ff = 1024;
  return config;
}

std::vector<uint32_t> ranks(std::string_view text) {
  const auto parsed = parse_ranks(text, four_layers());
  EXPECT_TRUE(parsed.ok()) << text << ": " << (parsed.ok() ? "" : parsed.error().line());
  return parsed.ok() ? *parsed : std::vector<uint32_t>();
}

std::string refused(std::string_view text) {
  const auto parsed = parse_ranks(text, four_layers());
  EXPECT_EQ(parsed.code(), Code::invalid_argument) << text;
  return parsed.ok() ? "" : parsed.error().line();
}

TEST(RankPlan, OneValueForAllLayers) {
  EXPECT_THAT(ranks("64"), ElementsAre(64, 64, 64, 64));
  EXPECT_THAT(ranks("d/4"), ElementsAre(64, 64, 64, 64));
  EXPECT_THAT(ranks("d/3"), ElementsAre(85, 85, 85, 85));
  EXPECT_THAT(ranks("256"), ElementsAre(256, 256, 256, 256));
}

TEST(RankPlan, LayersByName) {
  EXPECT_THAT(ranks("0-2=16,3=d/2"), ElementsAre(16, 16, 16, 128));
  EXPECT_THAT(ranks("3=8,0=1,1-2=2"), ElementsAre(1, 2, 2, 8));
  EXPECT_THAT(ranks("0-1=none,2-3=4"), ElementsAre(0, 0, 4, 4));
}

TEST(RankPlan, WhatIsNoRank) {
  for (const char* text : {"", "0", "-1", "64x", "d/0", "d/", "d/-2", "d", "4294967296", "0-3=", "0-3=x"}) {
    EXPECT_THAT(refused(text), HasSubstr("is not a rank; expected one such as 128")) << text;
  }
  EXPECT_THAT(refused("257"), HasSubstr("--rank: '257' is a rank of 257, expected 1 to 256"));
  EXPECT_THAT(refused("d/300"), HasSubstr("'d/300' is a rank of 0, expected 1 to 256"));
  EXPECT_THAT(refused("none"), HasSubstr("nothing to train"));
  EXPECT_THAT(refused("0-3=none"), HasSubstr("nothing to train"));
}

TEST(RankPlan, WhatNamesNoLayers) {
  for (const char* text : {"=4", "-=4", "1-=4", "-1=4", "2-1=4", "a=4", "0-3-4=4"}) {
    EXPECT_THAT(refused(text), HasSubstr("is not a layer; expected one such as 3, or a range such as 0-27"))
        << text;
  }
  EXPECT_THAT(refused("0-4=8"), HasSubstr("there is no layer 4; the last one is 3"));
  EXPECT_THAT(refused("0-3=8,64"), HasSubstr("'64' has no layers"));
  EXPECT_THAT(refused("0-3=8,,"), HasSubstr("'' has no layers"));
  EXPECT_THAT(refused("0-2=8,2-3=4"), HasSubstr("layer 2 is named twice"));
  EXPECT_THAT(refused("0-1=8,3=4"),
              HasSubstr("layer 2 is not named; leave it without a predictor with 2=none"));
}

}  // namespace
}  // namespace tierd
