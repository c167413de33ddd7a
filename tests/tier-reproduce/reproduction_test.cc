#include "tools/tier-reproduce/reproduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/temp_folder.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSound = R"(paper = "A paper"
[runs.one]
configuration = "hybrid"
model = "opt-125m"
machine = "m1-max"
set = ["run.threads=1"]
[[rows]]
what = "reading"
source = "table 1"
paper = 105
unit = "ms"
kind = "P"
tolerance = 10
run = "one"
figure = "step_ms"
[[rows]]
what = "walking"
source = "table 2"
kind = "N"
why = "nobody walks"
)";

class ReproductionFile : public testing::Test {
 protected:
  Result<Reproduction> read(const std::string& text) const {
    return read_reproduction(folder_.write("r.toml", text));
  }
  Result<Reproduction> read_with(const std::string& old, const std::string& changed) const {
    std::string text = kSound;
    text.replace(text.find(old), old.size(), changed);
    return read(text);
  }
  const TempFolder folder_;
};

TEST_F(ReproductionFile, HasRunsAndRows) {
  const auto reproduction = read(kSound);
  ASSERT_TRUE(reproduction.ok()) << reproduction.error().line();
  EXPECT_EQ(reproduction->paper, "A paper");
  ASSERT_EQ(reproduction->runs.size(), 1u);
  EXPECT_EQ(reproduction->runs[0].name, "one");
  EXPECT_EQ(reproduction->runs[0].tokens, 1u);
  EXPECT_EQ(reproduction->runs[0].settings, std::vector<std::string>{"run.threads=1"});
  ASSERT_EQ(reproduction->rows.size(), 2u);
  EXPECT_EQ(reproduction->rows[0].kind, RowKind::prediction);
  EXPECT_EQ(reproduction->rows[0].paper, 105);
  EXPECT_EQ(reproduction->rows[1].kind, RowKind::none);
}

TEST_F(ReproductionFile, ThoseThatAreShippedAreSound) {
  EXPECT_THAT(known_reproductions(),
              testing::ElementsAre("activeflow", "endor", "hermes", "llm-in-a-flash", "m2cache"));
  for (const std::string& name : known_reproductions()) {
    const auto reproduction = read_reproduction(name);
    ASSERT_TRUE(reproduction.ok()) << reproduction.error().line();
  }
}

TEST_F(ReproductionFile, SaysWhereItIsWrong) {
  const struct {
    const char* old;
    const char* changed;
    const char* says;
  } cases[] = {
      {"kind = \"P\"", "kind = \"Q\"", "r.toml:12: kind must be one of I, P, F, N"},
      {"tolerance = 10", "tolerance = \"10\"", "r.toml:13: tolerance must be a number"},
      {"tolerance = 10\n", "", "either a tolerance of the paper's figure, or least and most"},
      {"tolerance = 10", "tolerance = 10\nleast = 3", "either a tolerance of the paper's figure, or least"},
      {"paper = 105\n", "", "paper is missing, of which it has a tolerance"},
      {"run = \"one\"", "run = \"two\"", "there is no [runs.two]"},
      {"figure = \"step_ms\"\n", "", "figure is missing"},
      {"why = \"nobody walks\"\n", "", "why is missing"},
      {"machine = \"m1-max\"\n", "", "machine is missing"},
      {"set = [\"run.threads=1\"]", "set = [1]", "r.toml:6: set must be an array of strings"},
      {"[runs.one]", "[runs.one]\ntokens = 0", "tokens must be a whole number from 1 to 1048576"},
      {"run = \"one\"", "run = \"one\"\nagainst = [\"one\", \"one\"]", "against names two runs"},
      {"run = \"one\"", "run = \"one\"\nover = \"one\"\nagainst = \"one\"", "against names two runs"},
      {"[runs.one]", "[runs.one]\npartition = 0", "partition must be a whole number from 1"},
      {"[runs.one]", "[runs.one]\nspeed = 3", "unknown key 'speed'; there are configuration, model"},
      {"paper = \"A paper\"", "title = \"A paper\"", "'title' is unknown or of the wrong type"},
  };
  for (const auto& wrong : cases) {
    const auto reproduction = read_with(wrong.old, wrong.changed);
    ASSERT_FALSE(reproduction.ok()) << wrong.changed;
    EXPECT_EQ(reproduction.code(), Code::invalid_argument);
    EXPECT_THAT(reproduction.error().line(), HasSubstr(wrong.says));
  }
  EXPECT_THAT(read_reproduction("atlantis").error().line(), HasSubstr("endor"));
}

}  // namespace
}  // namespace tierd
