#include "tools/lab/sweep/sweep_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "core/report/figure_json.h"
#include "tools/lab/sweep/sweep_table.h"
#include "tools/measurement/output.h"

namespace tierd {
namespace {

using nlohmann::json;

// Returns the tests of all points, each with the values of its point in its name.
std::vector<TestFigures> tests_of_points(const std::vector<PointFigures>& points) {
  std::vector<TestFigures> tests;
  for (const PointFigures& point : points) {
    std::string values;
    for (const auto& [key, value] : point.values) values += fmt::format("{}={}, ", key, value);
    for (const TestFigures& test : point.tests) tests.emplace_back(test).test = values + test.test;
  }
  return tests;
}

std::string sweep_md(const SweepFigures& report) {
  const std::string text = sweep_table(report) + "\n" + test_notes(tests_of_points(report.points));
  if (!report.run) return text;
  return text + run_lines(*report.run) +
         "- every point on a runtime of its own, in turn, loaded for each block; rates are medians, parts of "
         "a "
         "token's time means\n" +
         memory_line(*report.run) + machine_line(*report.run);
}

// Returns an object for each test, with the values of its point.
std::vector<json> lines_of(const SweepFigures& report) {
  std::vector<json> lines;
  for (const PointFigures& point : report.points) {
    const json line = {{"sweep", figures::value_json(point.values)},
                       {"error", figures::value_json(point.error)},
                       {"run", figures::value_json(point.run)}};
    for (const TestFigures& test : point.tests) {
      lines.push_back(line);
      lines.back().emplace("test", figures_json(test));
    }
    if (point.error) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string sweep_text(const SweepFigures& report, Format format) {
  switch (format) {
    case Format::json:
      return figures_json(report).dump(2) + "\n";
    case Format::csv:
      return to_csv(lines_of(report));
    case Format::md:
      break;
  }
  return sweep_md(report);
}

}  // namespace tierd
