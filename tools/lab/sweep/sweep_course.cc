#include "tools/lab/sweep/sweep_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/engine/memory_plan.h"
#include "core/run/strategy_choices.h"
#include "core/run/tiers.h"
#include "core/store/cache_folder.h"
#include "tools/measurement/course.h"
#include "tools/measurement/report.h"

namespace tierd {
namespace {

// The course of one point, and its results.
class Point {
 public:
  Point(const SweepArguments& all, const SweepPoint& point)
      : arguments_(of_point(all, point)),
        course_(arguments_, "tier-sweep: " + point_name(all.sweep, point) + ": ") {
    for (const Workload& test : all.tests) tests_.emplace_back().test = test;
  }

  // Adds a round of each test. Only one point is in memory at a time.
  Status add_round() {
    const Status status = [&]() -> Status {
      TIERD_TRY(course_.load());
      layers_ = course_.runtime().plan().store.manifest().config.n_layers;
      for (Measurement& test : tests_) TIERD_TRY(course_.add_round(test));
      run_ = run_json(arguments_, course_.subject());
      return {};
    }();
    course_.unload();
    return status;
  }
  Status repeat_strays() {
    const Status status = [&]() -> Status {
      for (Measurement& test : tests_) TIERD_TRY(course_.repeat_strays(test));
      return {};
    }();
    course_.unload();
    return status;
  }
  const MemoryUse& memory_use() const { return course_.memory_use(); }

  nlohmann::json result() const {
    nlohmann::json list = nlohmann::json::array();
    for (const Measurement& test : tests_) list.push_back(test_json(test, layers_));
    return {{"run", run_}, {"tests", list}};
  }

 private:
  static Arguments of_point(const SweepArguments& all, const SweepPoint& point) {
    Arguments arguments = all;
    arguments.config = point.config;
    arguments.overrides = point.overrides;
    return arguments;
  }

  const Arguments arguments_;
  Course course_;
  std::vector<Measurement> tests_;
  nlohmann::json run_;
  uint32_t layers_ = 0;
};

Status check(const Config& config, const RuntimeOptions& options) {
  TIERD_TRY(choose_strategies(config));
  TIERD_ASSIGN(const TierTable tiers, choose_tiers(config));
  for (const Tier& tier : tiers.memories)
    TIERD_TRY(parse_capacity(tier.config.capacity, tier.key("capacity")));
  // The store is made before anything is timed.
  TIERD_ASSIGN(const WriteOptions write, store_options(config, options));
  TIERD_ASSIGN(const FoundStore found, find_store(config.model, SourceOptions{config.tokenizer}, write));
  if (found.source) TIERD_TRY(store_for(*found.source, write));
  return {};
}

// Returns the values in which both runs agree; null for those that differ.
nlohmann::json common(const nlohmann::json& a, const nlohmann::json& b) {
  if (a == b) return a;
  if (!a.is_object() || !b.is_object()) return nullptr;
  nlohmann::json both = nlohmann::json::object();
  for (const auto& [key, value] : a.items()) both[key] = b.contains(key) ? common(value, b[key]) : nullptr;
  return both;
}

}  // namespace

std::vector<std::optional<Error>> take_turns(size_t points, uint32_t rounds,
                                             const std::function<Status(size_t point)>& once) {
  std::vector<std::optional<Error>> errors(points);
  for (uint32_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < points; ++i) {
      if (errors[i]) continue;
      if (const Status status = once(i); !status.ok()) errors[i] = status.error();
    }
  }
  return errors;
}

Status check_sweep(const SweepArguments& arguments) {
  RuntimeOptions options;
  options.quiet = arguments.quiet;
  for (const SweepPoint& point : arguments.sweep.points) {
    if (const Status status = check(point.config, options); !status.ok()) return of_sweep(status.error());
  }
  return {};
}

nlohmann::json measure_sweep(const SweepArguments& arguments) {
  const Sweep& sweep = arguments.sweep;
  std::vector<std::unique_ptr<Point>> points;
  for (const SweepPoint& point : sweep.points) points.push_back(std::make_unique<Point>(arguments, point));
  const auto tell = [&](size_t i, const Status& status) {
    if (!status.ok() && !arguments.quiet) {
      fmt::print(stderr, "tier-sweep: {}: {}\n", point_name(sweep, sweep.points[i]), status.error().line());
    }
    return status;
  };
  std::vector<std::optional<Error>> errors =
      take_turns(points.size(), arguments.rounds, [&](size_t i) { return tell(i, points[i]->add_round()); });
  for (size_t i = 0; i < points.size(); ++i) {
    if (errors[i]) continue;
    if (const Status status = tell(i, points[i]->repeat_strays()); !status.ok()) errors[i] = status.error();
  }

  nlohmann::json report = {{"run", nullptr},
                           {"sweep", nlohmann::json::array()},
                           {"points", nlohmann::json::array()},
                           {"peer", nullptr}};
  for (const SweepAxis& axis : sweep.axes)
    report["sweep"].push_back({{"key", axis.key}, {"values", axis.values}});
  MemoryUse memory;
  for (size_t i = 0; i < points.size(); ++i) {
    nlohmann::json point = {{"error", nullptr}, {"run", nullptr}, {"tests", nlohmann::json::array()}};
    for (size_t a = 0; a < sweep.axes.size(); ++a)
      point["values"][sweep.axes[a].key] = sweep.points[i].values[a];
    if (errors[i]) {
      std::string line = errors[i]->line();
      std::replace(line.begin(), line.end(), '\n', ';');
      point["error"] = line;
    } else {
      point.update(points[i]->result());
      report["run"] = report["run"].is_null() ? point["run"] : common(report["run"], point["run"]);
      report["run"]["date"] = point["run"]["date"];
      const MemoryUse& use = points[i]->memory_use();
      if (use.peak_rss_bytes > memory.peak_rss_bytes) memory = use;
    }
    report["points"].push_back(std::move(point));
  }
  if (!report["run"].is_null()) {
    report["run"]["set"] = arguments.overrides;
    report["run"]["memory"] = memory_json(memory);
  }
  return report;
}

}  // namespace tierd
