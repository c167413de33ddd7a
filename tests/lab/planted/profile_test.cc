#include "tools/lab/planted/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "core/model/shape_file.h"
#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(PlantedProfileFile, FlashIsKnown) {
  EXPECT_THAT(known_planted_profiles(), Contains("flash"));
  const auto profile = read_planted_profile("flash");
  ASSERT_TRUE(profile.ok()) << profile.error().line();
  EXPECT_EQ(profile->name, "flash");
  EXPECT_EQ(profile->threshold_spread, 1.20);
  EXPECT_EQ(profile->last_rank, 1024u);
}

TEST(PlantedProfileFile, ErrorsNameTheLine) {
  const auto good = read_whole_file((shapes_folder() / "planted/flash.toml").string(), 1 << 20);
  ASSERT_TRUE(good.ok());
  const TempFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = *good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto profile = read_planted_profile(folder.write("own.toml", text));
    return profile.ok() ? "accepted" : profile.error().line();
  };
  EXPECT_EQ(refused("mean = 0.0330", "mean = 0.0330"), "accepted");
  EXPECT_THAT(refused("mean = 0.0330", "mean = 0.9"),
              HasSubstr("own.toml:9: 'activity.mean' is 0.9; a number"));
  EXPECT_THAT(refused("mean = 0.0330", "mean = nan"),
              HasSubstr("own.toml:9: 'activity.mean' is nan; a number"));
  EXPECT_THAT(refused("mean = 0.0330", "mean = \"all\""),
              HasSubstr("own.toml:9: 'activity.mean' is 'all'; a number"));
  EXPECT_THAT(refused("mean = 0.0330", "meen = 0.0330"), HasSubstr("'activity.mean' is missing"));
  EXPECT_THAT(refused("mean = 0.0330", "mean = 0.0330\nmore = 1"),
              HasSubstr("own.toml:10: 'activity.more' is unknown"));
  EXPECT_THAT(refused("rank = 128", "rank = 1"),
              HasSubstr("'predictor.rank' is 1; a whole number from 2 to"));
  EXPECT_THAT(refused("rank = 128", "rank = 128.5"),
              HasSubstr("'predictor.rank' is 128.5; a whole number from 2 to"));
  EXPECT_THAT(refused("[text]", "[texts]"), HasSubstr("'text' is missing; a table"));
  EXPECT_THAT(refused("[text]", "[extra]\n[text]"), HasSubstr("'extra' is unknown; known are activity"));
  EXPECT_THAT(refused("[text]", "[text"), HasSubstr("own.toml:"));
  EXPECT_THAT(refused("run_share = 0.32", "run_share = 0.96"), HasSubstr("together must be at most 1"));
  EXPECT_THAT(refused("false_positives = 0.07", "false_positives = 0.9\n#"), testing::StrEq("accepted"));
  EXPECT_EQ(read_planted_profile("/no/such.toml").code(), Code::not_found);
  EXPECT_THAT(read_planted_profile("flesh").error().line(), HasSubstr("known are activeflow, flash"));
}

}  // namespace
}  // namespace tierd
