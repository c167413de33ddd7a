#include "tools/tier-reproduce/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tierd {
namespace {

using testing::HasSubstr;

Row row(RowKind kind, double paper, double tolerance) {
  Row row;
  row.what = "reading";
  row.source = "table 1";
  row.unit = "ms";
  row.kind = kind;
  row.paper = paper;
  row.tolerance = tolerance;
  row.runs = {"one"};
  row.figure = "step_ms";
  return row;
}

const std::map<std::string, Figures> kRuns = {{"one", {{"step_ms", 108.0}}}, {"two", {{"step_ms", 54.0}}}};

TEST(Judge, GoesByTheTolerance) {
  const auto near = judge(row(RowKind::prediction, 100, 10), kRuns);
  ASSERT_TRUE(near.ok());
  EXPECT_DOUBLE_EQ(*near->ours, 108);
  EXPECT_NEAR(*near->error, 8, 1e-9);
  EXPECT_TRUE(near->passes);
  EXPECT_FALSE(judge(row(RowKind::prediction, 100, 5), kRuns)->passes);
  EXPECT_FALSE(judge(row(RowKind::identity, 120, 5), kRuns)->passes) << "too little is as wrong as too much";
}

TEST(Judge, DividesByAnotherRun) {
  Row ratio = row(RowKind::prediction, 2, 1);
  ratio.over = {"two"};
  EXPECT_DOUBLE_EQ(*judge(ratio, kRuns)->ours, 2);
  ratio.times = 100;
  EXPECT_DOUBLE_EQ(*judge(ratio, kRuns)->ours, 200);
}

TEST(Judge, DividesByAnotherQuotient) {
  Row ratio = row(RowKind::prediction, 4, 1);
  ratio.over = {"two"};
  ratio.against = {"two", "one"};
  EXPECT_DOUBLE_EQ(*judge(ratio, kRuns)->ours, 4) << "2 against a half";
}

TEST(Judge, TakesTheMeanOfSeveralRuns) {
  Row both = row(RowKind::prediction, 80, 2);
  both.runs = {"one", "two"};
  EXPECT_DOUBLE_EQ(*judge(both, kRuns)->ours, 81);
  both.over = {"two", "two"};
  EXPECT_DOUBLE_EQ(*judge(both, kRuns)->ours, 1.5);
}

TEST(Judge, GoesByBoundsWhereThePaperHasNoFigure) {
  Row bounded = row(RowKind::prediction, 0, 0);
  bounded.paper.reset();
  bounded.least = 100;
  EXPECT_TRUE(judge(bounded, kRuns)->passes);
  EXPECT_FALSE(judge(bounded, kRuns)->error);
  bounded.most = 107;
  EXPECT_FALSE(judge(bounded, kRuns)->passes);
}

TEST(Judge, DoesNotJudgeWhatCannotBeReproduced) {
  const auto outcome = judge(row(RowKind::none, 1, 0), kRuns);
  EXPECT_DOUBLE_EQ(*outcome->ours, 108);
  EXPECT_TRUE(outcome->passes);
}

TEST(Judge, TellsTheFiguresThereAre) {
  Row wrong = row(RowKind::prediction, 1, 1);
  wrong.figure = "steps";
  EXPECT_EQ(judge(wrong, kRuns).error().line(), "reading: run one has no figure 'steps'; there are step_ms");
}

TEST(Report, CountsWhatIsJudgedAlone) {
  Reproduced of;
  of.reproduction.paper = "A paper";
  of.reproduction.rows = {row(RowKind::prediction, 100, 10), row(RowKind::prediction, 100, 5),
                          row(RowKind::none, 100, 0)};
  of.reproduction.rows[2].why = "nobody knows";
  for (const Row& each : of.reproduction.rows) of.outcomes.push_back(*judge(each, kRuns));
  const nlohmann::json report = reproduced_json({of}, 7);
  EXPECT_EQ(report["judged"], 2);
  EXPECT_EQ(report["passed"], 1);
  EXPECT_EQ(report["seed"], 7);
  EXPECT_EQ(report["papers"][0]["rows"][2]["passes"], nullptr);
  const std::string text = reproduced_markdown(report);
  EXPECT_THAT(text, HasSubstr("## A paper"));
  EXPECT_THAT(text, HasSubstr("| reading | table 1 | 100 ms | 108 ms | +8.0 % | P | ±10 % | passes |  |"));
  EXPECT_THAT(text, HasSubstr("**misses**"));
  EXPECT_THAT(text, HasSubstr("not judged | nobody knows |"));
  EXPECT_THAT(text, HasSubstr("1 of 2 rows that are judged pass"));
}

}  // namespace
}  // namespace tierd
