#include "tools/lab/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tools/measurement/md_table.h"

namespace tierd {
namespace {

using nlohmann::json;

std::string percent(const json& share) {
  return fmt::format("{:.3g} %", 100 * share.get<double>());
}

// Columns that at least one test of a point needs.
struct Extras {
  std::set<std::string> gauges;  // of the cache
  bool prediction = false;
  bool loss = false;
};

Extras extras_of(const json& points) {
  Extras extras;
  for (const json& point : points) {
    for (const json& test : point["tests"]) {
      for (const auto& [name, value] : test["cache"].items()) extras.gauges.insert(name);
      if (test["prediction"].is_null()) continue;
      extras.prediction = true;
      extras.loss = extras.loss || !test["prediction"]["loss"].is_null();
    }
  }
  return extras;
}

std::vector<std::string> columns(const json& axes, const Extras& extras) {
  std::vector<std::string> names;
  for (const json& axis : axes) names.push_back(axis["key"].get<std::string>());
  for (const char* name :
       {"test", "DRAM peak", "in use", "resident", "tokens/s", "from – to", "ms", "compute", "predictor",
        "stall", "reading", "management", "wanted", "read", "reads", "of"})
    names.push_back(name);
  for (const std::string& gauge : extras.gauges) names.push_back("cache: " + gauge);
  if (extras.prediction) names.push_back("predicted");
  if (extras.loss) names.insert(names.end(), {"recall", "missed mass"});
  return names;
}

std::vector<std::string> cells_of(const json& run, const json& test, const Extras& extras) {
  const json& t = test["per_token"];
  const json& held = test["memory"];
  const double weights = run["tensor_bytes"].get<double>();
  std::vector<std::string> cells = {test["test"].get<std::string>(),
                                    bytes_text(run["budget"]["peak_bytes"]),
                                    bytes_text(held["bytes"]),
                                    percent(weights > 0 ? held["weight_bytes"].get<double>() / weights : 0),
                                    figure(test["tokens_per_second"]["median"]),
                                    range_text(test["tokens_per_second"]),
                                    figure(t["step_ms"]),
                                    figure(t["compute_ms"]),
                                    figure(t["predictor_ms"]),
                                    figure(t["stall_ms"]),
                                    figure(t["reading_ms"]),
                                    figure(t["management_ms"]),
                                    bytes_text(t["wanted_bytes"]),
                                    bytes_text(t["read_bytes"]),
                                    figure(t["reads"]),
                                    bytes_text(t["bytes_per_read"])};
  for (const std::string& gauge : extras.gauges)
    cells.push_back(test["cache"].contains(gauge) ? figure(test["cache"][gauge]) : "");
  const json& prediction = test["prediction"];
  if (extras.prediction) cells.push_back(prediction.is_null() ? "" : percent(prediction["used_share"]));
  if (extras.loss) {
    const bool there = !prediction.is_null() && !prediction["loss"].is_null();
    cells.push_back(there ? percent(prediction["loss"]["recall"]) : "");
    cells.push_back(there ? percent(prediction["loss"]["missed_mass"]) : "");
  }
  return cells;
}

}  // namespace

std::string sweep_table(const json& report) {
  const json& axes = report["sweep"];
  const Extras extras = extras_of(report["points"]);
  const std::vector<std::string> names = columns(axes, extras);
  std::string text = table_head(names, axes.size() + 1);
  for (const json& point : report["points"]) {
    std::vector<std::string> values;
    for (const json& axis : axes)
      values.push_back(point["values"][axis["key"].get<std::string>()].get<std::string>());
    if (!point["error"].is_null()) {
      std::string error = point["error"].get<std::string>();
      std::replace(error.begin(), error.end(), '|', '/');
      values.push_back(error);
      values.resize(names.size());
      text += table_row(values);
    }
    for (const json& test : point["tests"]) {
      std::vector<std::string> row = values;
      for (std::string& cell : cells_of(point["run"], test, extras)) row.push_back(std::move(cell));
      text += table_row(row);
    }
  }
  return text;
}

}  // namespace tierd
