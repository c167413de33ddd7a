#include "tools/lab/reproduce/reproduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"

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
      {"kind = \"P\"", "kind = \"Q\"", "r.toml:12: 'rows.kind' is 'Q'; one of I, P, O, F, N"},
      {"tolerance = 10", "tolerance = \"10\"", "r.toml:13: 'rows.tolerance' is '10'; a number"},
      {"tolerance = 10\n", "",
       "kind P is judged either by the paper's figure (paper) and a tolerance of it, or"},
      {"tolerance = 10", "tolerance = 10\nleast = 3", "kind P is judged either by the paper's figure"},
      {"tolerance = 10", "least = 3\nmost = 4", "kind P is judged either by the paper's figure"},
      {"paper = 105\n", "", "kind P is judged either by the paper's figure"},
      {"tolerance = 10", "tolerance = 10\npossible = [3, 1]",
       "r.toml:14: 'rows.possible' is no range; two numbers"},
      {"tolerance = 10", "tolerance = 10\npossible = [3]", "'rows.possible' is no range; two numbers"},
      {"why = \"nobody walks\"", "why = \"nobody walks\"\nleast = 3", "kind N is not judged"},
      {"run = \"one\"", "run = \"two\"", "there is no [runs.two]"},
      {"figure = \"step_ms\"\n", "", "'rows.figure' is missing"},
      {"why = \"nobody walks\"\n", "", "'rows.why' is missing"},
      {"machine = \"m1-max\"\n", "", "'runs.one.machine' is missing"},
      {"set = [\"run.threads=1\"]", "set = [1]",
       "r.toml:6: 'runs.one.set' is of type array; a list of strings"},
      {"[runs.one]", "[runs.one]\ntokens = 0", "'runs.one.tokens' is 0; a whole number from 1 to 1048576"},
      {"run = \"one\"", "run = \"one\"\nagainst = [\"one\", \"one\"]", "against names two runs"},
      {"run = \"one\"", "run = \"one\"\nover = \"one\"\nagainst = \"one\"", "against names two runs"},
      {"[runs.one]", "[runs.one]\npartition = 0", "'runs.one.partition' is 0; a whole number from 1"},
      {"[runs.one]", "[runs.one]\nspeed = 3", "'runs.one.speed' is unknown; known are configuration, model"},
      {"paper = \"A paper\"", "title = \"A paper\"", "'paper' is missing; a string"},
  };
  for (const auto& wrong : cases) {
    const auto reproduction = read_with(wrong.old, wrong.changed);
    ASSERT_FALSE(reproduction.ok()) << wrong.changed;
    EXPECT_EQ(reproduction.code(), Code::invalid_argument);
    EXPECT_THAT(reproduction.error().line(), HasSubstr(wrong.says));
  }
  EXPECT_THAT(read_reproduction("atlantis").error().line(), HasSubstr("endor"));
}

// Returns a file with one row, after its run.
std::string row(const std::string& keys) {
  std::string text = kSound;
  text.erase(text.find("[[rows]]"));
  return text + "[[rows]]\nwhat = \"reading\"\nsource = \"table 1\"\nrun = \"one\"\n" + keys;
}

TEST_F(ReproductionFile, HasAllKinds) {
  const struct {
    const char* keys;
    RowKind kind;
  } cases[] = {
      {"kind = \"I\"\nfigure = \"step_ms\"\npaper = 3\ntolerance = 1\n", RowKind::identity},
      {"kind = \"P\"\nfigure = \"step_ms\"\npaper = 3\ntolerance = 1\n", RowKind::prediction},
      {"kind = \"P\"\nfigure = \"step_ms\"\nleast = 4.79\nmost = 7.75\n", RowKind::prediction},
      {"kind = \"O\"\nfigure = \"step_ms\"\nleast = 3\n", RowKind::order},
      {"kind = \"F\"\nfigure = \"step_ms\"\npaper = 3\ntolerance = 1\n", RowKind::fitted},
      {"kind = \"N\"\nfigure = \"step_ms\"\nwhy = \"no rate is given\"\n", RowKind::none},
  };
  for (const auto& each : cases) {
    const auto reproduction = read(row(each.keys));
    ASSERT_TRUE(reproduction.ok()) << reproduction.error().line();
    EXPECT_EQ(reproduction->rows.front().kind, each.kind);
    EXPECT_EQ(std::string(1, each.keys[8]), name(each.kind));
  }
}

TEST_F(ReproductionFile, RefusesARowThatCannotMiss) {
  const char* void_rows[] = {
      "kind = \"O\"\nfigure = \"step_ms\"\nleast = 0\n",
      "kind = \"O\"\nfigure = \"gpu_percent\"\nmost = 100\n",
      "kind = \"O\"\nfigure = \"gpu_percent\"\ntimes = 0.5\nmost = 50\n",
      "kind = \"P\"\nfigure = \"gpu_percent\"\npaper = 50\ntolerance = 100\n",
      "kind = \"P\"\nfigure = \"gpu_percent\"\nleast = 0\nmost = 100\n",
      // A longer window holds all neurons of a shorter one.
      "kind = \"O\"\nfigure = \"flash>dram_gb\"\nover = \"one\"\nmost = 1\npossible = [0, 1]\n",
      "kind = \"P\"\nfigure = \"dram_k\"\nleast = 0.5\nmost = 4\npossible = [1, 4]\n",
  };
  for (const char* keys : void_rows) {
    const auto reproduction = read(row(keys));
    ASSERT_FALSE(reproduction.ok()) << keys;
    EXPECT_THAT(reproduction.error().line(),
                AllOf(HasSubstr("r.toml:7: the row cannot miss"), HasSubstr(" to ")))
        << keys;
  }
  const char* sound_rows[] = {
      "kind = \"O\"\nfigure = \"step_ms\"\nmost = 100\n",
      "kind = \"O\"\nfigure = \"gpu_percent\"\nleast = 80\n",
      "kind = \"O\"\nfigure = \"gpu_percent\"\nover = \"one\"\nmost = 100\n",
      "kind = \"O\"\nfigure = \"flash>dram_gb\"\nover = \"one\"\nmost = 0.9\npossible = [0, 1]\n",
  };
  for (const char* keys : sound_rows) {
    const auto reproduction = read(row(keys));
    EXPECT_TRUE(reproduction.ok()) << reproduction.error().line();
  }
}

TEST_F(ReproductionFile, RefusesOneFigureAsTwoPredictions) {
  std::string text = kSound;
  const std::string first =
      text.substr(text.find("[[rows]]"), text.rfind("[[rows]]") - text.find("[[rows]]"));
  EXPECT_THAT(read(text + first).error().line(),
              HasSubstr("'reading' is predicted by the same figure of the same run"));
  std::string other = first;
  other.replace(other.find("kind = \"P\""), 10, "kind = \"I\"");
  EXPECT_TRUE(read(text + other).ok()) << "an identity may repeat it";
}

}  // namespace
}  // namespace tierd
