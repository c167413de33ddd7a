#include "tools/lab/sweep/sweep_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/lab/sweep/sweep_table.h"
#include "tools/measurement/md_table.h"
#include "tools/measurement/output.h"

namespace tierd {
namespace {

using nlohmann::json;

json tests_of_points(const json& points) {
  json tests = json::array();
  for (const json& point : points) {
    for (json test : point["tests"]) {
      std::string values;
      for (const auto& [key, value] : point["values"].items())
        values += fmt::format("{}={}, ", key, word(value));
      test["test"] = values + test["test"].get<std::string>();
      tests.push_back(std::move(test));
    }
  }
  return tests;
}

std::string sweep_md(const json& report) {
  std::string text = sweep_table(report) + "\n" + test_notes(tests_of_points(report["points"]));
  if (report["run"].is_null()) return text;
  return text + run_lines(report["run"]) +
         "- every point on a runtime of its own, in turn, loaded for each block; rates are medians, parts of "
         "a "
         "token's time means\n" +
         memory_line(report["run"]) + machine_line(report["run"]);
}

// Returns an object for each test, with the values of its point.
std::vector<json> lines_of(const json& report) {
  std::vector<json> lines;
  for (const json& point : report["points"]) {
    const json line = {{"sweep", point["values"]}, {"error", point["error"]}, {"run", point["run"]}};
    for (const json& test : point["tests"]) {
      lines.push_back(line);
      lines.back()["test"] = test;
    }
    if (!point["error"].is_null()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string sweep_text(const json& report, Format format) {
  switch (format) {
    case Format::json:
      return report.dump(2) + "\n";
    case Format::csv:
      return to_csv(lines_of(report));
    case Format::md:
      break;
  }
  return sweep_md(report);
}

}  // namespace tierd
