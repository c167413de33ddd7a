#include "tools/lab/reproduce/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/report/figure_json.h"

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

TEST(Judge, GoesByAnOrderAlone) {
  Row order = row(RowKind::order, 0, 0);
  order.paper.reset();
  order.least = 107;
  EXPECT_TRUE(judge(order, kRuns)->passes);
  order.least = 109;
  EXPECT_FALSE(judge(order, kRuns)->passes);
}

Reproduced reproduced(const std::vector<Row>& rows) {
  Reproduced of;
  of.reproduction.paper = "A paper";
  of.reproduction.rows = rows;
  for (const Row& each : rows) of.outcomes.push_back(*judge(each, kRuns));
  return of;
}

TEST(Report, CountsPredictionsApart) {
  std::vector<Row> rows = {row(RowKind::prediction, 100, 10), row(RowKind::prediction, 100, 5),
                           row(RowKind::prediction, 108, 1),  row(RowKind::none, 100, 0),
                           row(RowKind::identity, 108, 1),    row(RowKind::fitted, 200, 1),
                           row(RowKind::order, 0, 0)};
  rows[3].why = "no rate is given";
  rows[6].paper.reset();
  rows[6].least = 100;
  const ReproducedFigures figures = reproduced_figures({reproduced(rows)}, 7);
  const nlohmann::json report = figures_json(figures);
  EXPECT_EQ(report["counts"], nlohmann::json({{"predictions", {{"rows", 3}, {"passed", 2}}},
                                              {"orders", {{"rows", 1}, {"passed", 1}}},
                                              {"fits", {{"rows", 1}, {"passed", 0}}},
                                              {"identities", {{"rows", 1}, {"passed", 1}}},
                                              {"not_reproducible", {{"rows", 1}}}}));
  EXPECT_EQ(report["judged"], 6);
  EXPECT_EQ(report["passed"], 4);
  EXPECT_EQ(report["seed"], 7);
  EXPECT_EQ(report["papers"][0]["rows"][3]["passes"], nullptr);
  const std::string text = reproduced_markdown(figures);
  EXPECT_THAT(text, HasSubstr("## A paper"));
  EXPECT_THAT(text, HasSubstr("| reading | table 1 | 100 ms | 108 ms | +8.0 % | P | ±10 % | passes |  |"));
  EXPECT_THAT(text, HasSubstr("**misses**"));
  EXPECT_THAT(text, HasSubstr("| O | ≥ 100 | passes |"));
  EXPECT_THAT(text, HasSubstr("not judged | no rate is given |"));
  EXPECT_THAT(text, testing::EndsWith(
                        "\n3 predictions, 2 pass.\n\n- O, orders, 1 row, 1 pass\n- F, fits, 1 row, 0 pass\n"
                        "- I, identities, 1 row, 1 pass\n- N, not reproducible, 1 row, not judged\n\n"
                        "Seed 7.\n"));
}

TEST(Report, IsTheSameForTheSameOutcomes) {
  const std::vector<Row> rows = {row(RowKind::prediction, 100, 10), row(RowKind::identity, 108, 1)};
  EXPECT_EQ(figures_json(reproduced_figures({reproduced(rows)}, 1)).dump(),
            figures_json(reproduced_figures({reproduced(rows)}, 1)).dump());
}

}  // namespace
}  // namespace tierd
