// The report of a sweep with known figures.
#pragma once

#include <string>

#include "tests/measurement/known_figures.h"
#include "tools/lab/sweep/sweep_figures.h"

namespace tierd {

// Returns a sweep of two keys with four points, the last of which has failed.
inline SweepFigures swept() {
  SweepFigures report{.run = run(),
                      .sweep = {{"cache.name", {"lru", "pi'n|ned"}}, {"cache.k", {"1", "2"}}},
                      .points = {},
                      .peer = {}};
  report.run->cache.reset();
  for (const std::string& name : report.sweep[0].values) {
    for (const std::string& k : report.sweep[1].values) {
      PointFigures& point = report.points.emplace_back();
      point.values = {{"cache.name", name}, {"cache.k", k}};
      point.run = run();
      point.run->cache = name;
      point.tests = {test_figures(result(), kLayers)};
    }
  }
  report.points.back().run.reset();
  report.points.back().tests.clear();
  report.points.back().error = "tiers.dram.capacity: too small | by far";
  return report;
}

}  // namespace tierd
