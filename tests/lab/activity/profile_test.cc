#include "tools/lab/activity/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "core/model/shape_file.h"
#include "tests/base/temp_folder.h"
#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ActivityProfiles, AreKnown) {
  EXPECT_THAT(known_activity_profiles(),
              ElementsAre("activeflow", "hermes-falcon-40b", "hermes-llama-13b", "hermes-llama-70b",
                          "llm-in-a-flash", "llm-in-a-flash-falcon", "llm-in-a-flash-llama",
                          "llm-in-a-flash-persimmon", "llm-in-a-flash-phi", "m2cache"));
  for (const std::string& name : known_activity_profiles()) {
    const auto profile = read_activity_profile(name);
    ASSERT_TRUE(profile.ok()) << profile.error().line();
    EXPECT_EQ(profile->name, name);
    EXPECT_EQ(profile->kappa, 0.6);
  }
  const auto falcon = read_activity_profile("hermes-falcon-40b");
  EXPECT_EQ(falcon->lambda, 0.845);
  EXPECT_EQ(falcon->blocks, 8u);
  EXPECT_FALSE(falcon->depth);
}

TEST(ActivityProfiles, ErrorsNameTheLine) {
  const std::string path = (shapes_folder().parent_path() / "activity/llm-in-a-flash.toml").string();
  const auto good = read_whole_file(path, 1 << 20);
  ASSERT_TRUE(good.ok());
  const TempFolder folder;
  const auto read = [&](const std::string& from, const std::string& to) {
    std::string text = *good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto profile = read_activity_profile(folder.write("own.toml", text));
    return profile.ok() ? "accepted" : profile.error().line();
  };
  EXPECT_EQ(read("a = 0.194", "a = 0.194"), "accepted");
  EXPECT_THAT(read("a = 0.194", "a = 0"), HasSubstr("own.toml:5: 'rates.a' is 0; a number from 0.05"));
  EXPECT_THAT(read("a = 0.194", "a = nan"), HasSubstr("own.toml:5: 'rates.a' is nan; a number from 0.05"));
  EXPECT_THAT(read("lambda = 0.16", "lambda = 1.1"), HasSubstr("'time.lambda' is 1.1; a number from 0 to 1"));
  EXPECT_THAT(read("blocks = 1", "blocks = 0"), HasSubstr("'text.blocks' is 0; a whole number from 1"));
  EXPECT_THAT(read("chi = 0.3", "phi = 0.3"), HasSubstr("'text.chi' is missing"));
  EXPECT_THAT(read("[time]", "[times]"), HasSubstr("'time' is missing; a table"));
  EXPECT_THAT(read("[rates]", "depth = 3\n[rates]"), HasSubstr("own.toml"));
  EXPECT_THAT(read("last = 0.0536", ""), HasSubstr("'depth.last' is missing"));
  EXPECT_THAT(read("[depth]", "[hidden]\ncosine = 0.9\n[depth]"), HasSubstr("accepted"));
  EXPECT_THAT(read("[depth]", "[deep]"), HasSubstr("'deep' is unknown; known are rates"));
  EXPECT_THAT(read_activity_profile("flash").error().line(), HasSubstr("known are activeflow"));
}

// OPT's layers: the ratios of 1.56, 2.66 and 5.36 %, with the profile's mean.
TEST(ActivityProfiles, RatesByDepth) {
  const auto profile = read_activity_profile("llm-in-a-flash");
  ASSERT_TRUE(profile.ok());
  const auto rates = layer_rates(*profile, 33, true);
  ASSERT_TRUE(rates.ok());
  double sum = 0, used = 0, fresh = 0;
  for (const BetaRates& layer : *rates) {
    sum += mean_rate(layer) / 33;
    used += used_within(layer, profile->lambda, 5) / 33;
    fresh += new_in_token(layer, profile->lambda, 4) / 33;
    EXPECT_NEAR(layer.a + layer.b, profile->rates.a + profile->rates.b, 1e-12);
  }
  EXPECT_NEAR(sum, mean_rate(profile->rates), 1e-12);
  EXPECT_NEAR(mean_rate(rates->at(32)) / mean_rate(rates->at(0)), 5.36 / 1.56, 1e-9);
  EXPECT_NEAR(mean_rate(rates->at(32)) / mean_rate(rates->at(16)), 5.36 / 2.66, 1e-9);
  // The figures to which the profile is fitted hold approximately.
  EXPECT_NEAR(used, 0.24, 0.005);
  EXPECT_NEAR(fresh, 0.024, 0.001);
  const auto other = read_activity_profile("m2cache");
  EXPECT_THAT(layer_rates(*other, 32, true).error().line(), HasSubstr("m2cache: has no table [depth]"));
  ActivityProfile steep = *profile;
  steep.depth = {.first = 1e-4, .middle = 1e-4, .last = 1};
  EXPECT_THAT(layer_rates(steep, 32, true).error().line(), HasSubstr("of layer 0 active"));
  EXPECT_EQ(StickyActivity::create(*other, {.neurons = {8}, .by_depth = true}).code(),
            Code::invalid_argument);
}

}  // namespace
}  // namespace tierd
