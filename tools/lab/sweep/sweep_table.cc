#include "tools/lab/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tools/measurement/md_table.h"

namespace tierd {
namespace {

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

// Columns that at least one test of a point needs.
struct Extras {
  std::set<std::string> gauges;  // of the cache
  bool prediction = false;
  bool loss = false;
};

Extras extras_of(const std::vector<PointFigures>& points) {
  Extras extras;
  for (const PointFigures& point : points) {
    for (const TestFigures& test : point.tests) {
      for (const auto& [name, value] : test.cache) extras.gauges.insert(name);
      extras.prediction = extras.prediction || test.prediction;
      extras.loss = extras.loss || (test.prediction && test.prediction->loss);
    }
  }
  return extras;
}

std::vector<std::string> columns(const std::vector<AxisFigures>& axes, const Extras& extras) {
  std::vector<std::string> names;
  for (const AxisFigures& axis : axes) names.push_back(axis.key);
  for (const char* name :
       {"test", "DRAM peak", "in use", "resident", "tokens/s", "from – to", "ms", "compute", "predictor",
        "stall", "reading", "management", "wanted", "read", "reads", "of"})
    names.push_back(name);
  for (const std::string& gauge : extras.gauges) names.push_back("cache: " + gauge);
  if (extras.prediction) names.push_back("predicted");
  if (extras.loss) names.insert(names.end(), {"recall", "missed mass"});
  return names;
}

std::vector<std::string> cells_of(const BenchRunFigures& run, const TestFigures& test, const Extras& extras) {
  const TokenFigures& t = test.per_token;
  const auto weights = static_cast<double>(run.tensor_bytes.value_or(0));
  std::vector<std::string> cells = {test.test,
                                    bytes_text(run.budget.peak_bytes),
                                    bytes_text(test.memory.bytes),
                                    percent(weights > 0 ? test.memory.weight_bytes / weights : 0),
                                    figure(test.tokens_per_second.median),
                                    range_text(test.tokens_per_second),
                                    figure(t.step_ms),
                                    figure(t.compute_ms),
                                    figure(t.predictor_ms),
                                    figure(t.stall_ms),
                                    figure(t.reading_ms),
                                    figure(t.management_ms),
                                    bytes_text(t.wanted_bytes),
                                    bytes_text(t.read_bytes),
                                    figure(t.reads),
                                    bytes_text(t.bytes_per_read)};
  for (const std::string& gauge : extras.gauges)
    cells.push_back(test.cache.contains(gauge) ? figure(test.cache.at(gauge)) : "");
  const auto& prediction = test.prediction;
  if (extras.prediction) cells.push_back(prediction ? percent(prediction->used_share) : "");
  if (extras.loss) {
    const bool there = prediction && prediction->loss;
    cells.push_back(there ? percent(prediction->loss->recall) : "");
    cells.push_back(there ? percent(prediction->loss->missed_mass) : "");
  }
  return cells;
}

}  // namespace

std::string sweep_table(const SweepFigures& report) {
  const Extras extras = extras_of(report.points);
  const std::vector<std::string> names = columns(report.sweep, extras);
  std::string text = table_head(names, report.sweep.size() + 1);
  for (const PointFigures& point : report.points) {
    std::vector<std::string> values;
    for (const AxisFigures& axis : report.sweep) values.push_back(point.values.at(axis.key));
    if (point.error) {
      std::vector<std::string> row = values;
      std::ranges::replace(row.emplace_back(*point.error), '|', '/');
      row.resize(names.size());
      text += table_row(row);
    }
    for (const TestFigures& test : point.tests) {
      std::vector<std::string> row = values;
      for (std::string& cell : cells_of(*point.run, test, extras)) row.push_back(std::move(cell));
      text += table_row(row);
    }
  }
  return text;
}

}  // namespace tierd
