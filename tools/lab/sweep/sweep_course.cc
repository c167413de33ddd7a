#include "tools/lab/sweep/sweep_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

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
      run_ = run_figures(arguments_, course_.subject());
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
  const ProcessFigures& memory_use() const { return course_.memory_use(); }
  const BenchRunFigures& run() const { return run_; }

  std::vector<TestFigures> tests() const {
    std::vector<TestFigures> list;
    for (const Measurement& test : tests_) list.push_back(test_figures(test, layers_));
    return list;
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
  BenchRunFigures run_;
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

// Empties the values of `common` in which `other` differs; lists are kept.
template <class V>
void keep_common(V& common, const V& other) {
  if constexpr (HasFigures<V>) {
    for_each_figure<V>([&](const auto& figure) { keep_common(common.*figure.member, other.*figure.member); });
  } else if constexpr (figures::is_map<V>) {
    for (auto& [key, value] : common) {
      if (other.contains(key))
        keep_common(value, other.at(key));
      else
        value.reset();
    }
  } else if constexpr (figures::is_optional<V>) {
    if constexpr (HasFigures<typename V::value_type>) {
      if (common && other) return keep_common(*common, *other);
      if (!other) common.reset();
    } else if (common != other) {
      common.reset();
    }
  }
}

// `error`: of the point; empty: it was measured.
PointFigures point_figures(const Sweep& sweep, size_t i, const Point& measured,
                           const std::optional<Error>& error) {
  PointFigures point;
  for (size_t a = 0; a < sweep.axes.size(); ++a) point.values[sweep.axes[a].key] = sweep.points[i].values[a];
  if (error) {
    point.error = error->line();
    std::ranges::replace(*point.error, '\n', ';');
  } else {
    point.run = measured.run();
    point.tests = measured.tests();
  }
  return point;
}

// Adds a point that was measured to what all of them share.
void share(const BenchRunFigures& run, std::optional<BenchRunFigures>& common) {
  if (common)
    keep_common(*common, run);
  else
    common = run;
  common->date = run.date;
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

SweepFigures measure_sweep(const SweepArguments& arguments) {
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

  SweepFigures report;
  for (const SweepAxis& axis : sweep.axes) report.sweep.push_back({axis.key, axis.values});
  ProcessFigures memory;
  for (size_t i = 0; i < points.size(); ++i) {
    const PointFigures& point = report.points.emplace_back(point_figures(sweep, i, *points[i], errors[i]));
    if (!point.run) continue;
    share(*point.run, report.run);
    const ProcessFigures& use = points[i]->memory_use();
    if (use.peak_rss_bytes > memory.peak_rss_bytes) memory = use;
  }
  if (report.run) {
    report.run->set = arguments.overrides;
    report.run->memory = memory;
  }
  return report;
}

}  // namespace tierd
