// Tests each form of the report on a sweep with known figures.
#include "tools/lab/sweep/sweep_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/report/figure_json.h"
#include "tests/lab/sweep/known_sweep.h"
#include "tools/lab/sweep/sweep_output.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(SweepTable, ARowAPoint) {
  const std::vector<std::string> lines = lines_of(sweep_table(swept()));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0],
            "| cache.name | cache.k | test | DRAM peak | in use | resident | tokens/s | from – to | ms | "
            "compute | predictor | stall | reading | management | wanted | read | reads | of | cache: k |");
  EXPECT_THAT(lines[2], HasSubstr("| lru | 1 | tg10 | 1.90 GB | 1.50 GB | 25 % | 1.00 | 0.800 – 1.25 | "));
  EXPECT_THAT(lines[2], HasSubstr("| 2.00 GB | 8.00 | 250 MB | 3.50 |"));
  EXPECT_THAT(lines[3], HasSubstr("| lru | 2 |"));
}

TEST(SweepTable, AFailedPointHasItsErrorAndAsManyCells) {
  const std::vector<std::string> lines = lines_of(sweep_table(swept()));
  EXPECT_THAT(lines[5], HasSubstr("| 2 | tiers.dram.capacity: too small / by far |"));
  const auto bars = [](const std::string& line) { return std::count(line.begin(), line.end(), '|'); };
  EXPECT_EQ(bars(lines[3]), bars(lines[0]));
}

TEST(SweepTable, ColumnsOfPredictionWhereSomethingIsPredicted) {
  SweepFigures report = swept();
  EXPECT_THAT(sweep_table(report), Not(HasSubstr("predicted")));
  report.points[0].tests[0].prediction = BenchPredictionFigures{0.099, {}};
  EXPECT_THAT(sweep_table(report), HasSubstr("| predicted |"));
  EXPECT_THAT(sweep_table(report), HasSubstr("| 9.9 % |"));
  report.points[1].tests[0].prediction = BenchPredictionFigures{0.1, MissedFigures{0.955, 0.3, 0.0123}};
  EXPECT_THAT(sweep_table(report), HasSubstr("| predicted | recall | missed mass |"));
  EXPECT_THAT(sweep_table(report), HasSubstr("| 10 % | 95.5 % | 1.23 % |"));
}

TEST(SweepOutput, MdSaysWhatAllPointsShare) {
  const std::string text = sweep_text(swept(), Format::md);
  EXPECT_THAT(text, HasSubstr("cache varies, balancer single"));
  EXPECT_THAT(text, HasSubstr("- every point on a runtime of its own, in turn"));
  EXPECT_THAT(text, HasSubstr("direct I/O"));
  EXPECT_THAT(text, HasSubstr("- cache.k=1, cache.name=lru, tg10: limit by flash"));
  EXPECT_THAT(text, HasSubstr("commit abc"));
}

TEST(SweepOutput, MdOfNothingButErrors) {
  SweepFigures report = swept();
  report.run.reset();
  report.points.erase(report.points.begin(), report.points.end() - 1);
  EXPECT_THAT(sweep_text(report, Format::md), HasSubstr("too small"));
}

TEST(SweepOutput, JsonIsTheReport) {
  EXPECT_EQ(json::parse(sweep_text(swept(), Format::json)), figures_json(swept()));
}

TEST(SweepOutput, CsvHasOneLineAPoint) {
  const std::vector<std::string> lines = lines_of(sweep_text(swept(), Format::csv));
  ASSERT_EQ(lines.size(), 5u);
  const auto names = cells(lines[0]);
  const auto column = [&](const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    EXPECT_NE(at, names.end()) << name;
    return static_cast<size_t>(at - names.begin());
  };
  for (const std::string& line : lines) EXPECT_EQ(cells(line).size(), names.size());
  EXPECT_EQ(cells(lines[2])[column("sweep.cache.k")], "\"2\"");
  EXPECT_EQ(cells(lines[2])[column("test.per_token.reads")], "8.0");
  EXPECT_EQ(cells(lines[2])[column("error")], "");
  EXPECT_THAT(lines[4], HasSubstr("too small"));
}

}  // namespace
}  // namespace tierd
