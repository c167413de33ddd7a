// The report of a sweep.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/report/figure.h"
#include "tools/measurement/figures.h"

namespace tierd {

struct AxisFigures {
  std::string key;
  std::vector<std::string> values;

  static constexpr auto figures() {
    using F = AxisFigures;
    return std::tuple(
        Figure{&F::key, "key", Quantity::text, Adds::latest, "of the configuration"},
        Figure{&F::values, "values", Quantity::text, Adds::latest, "in the order of the points"});
  }
};

// A point that failed has neither run nor tests.
struct PointFigures {
  std::map<std::string, std::string> values;
  std::optional<std::string> error;
  std::optional<BenchRunFigures> run;
  std::vector<TestFigures> tests;

  static constexpr auto figures() {
    using F = PointFigures;
    return std::tuple(Figure{&F::values, "values", Quantity::text, Adds::latest, "by key"},
                      Figure{&F::error, "error", Quantity::text, Adds::latest, "one line", true},
                      Figure{&F::run, "run", Quantity::parts, Adds::latest, "as of a bench", true},
                      Figure{&F::tests, "tests", Quantity::parts, Adds::latest, "as of a bench"});
  }
};

struct SweepFigures {
  std::optional<BenchRunFigures> run;
  std::vector<AxisFigures> sweep;
  std::vector<PointFigures> points;
  std::optional<PeerFigures> peer;

  static constexpr auto figures() {
    using F = SweepFigures;
    return std::tuple(
        Figure{&F::run, "run", Quantity::parts, Adds::latest, "common values; null where points differ",
               true},
        Figure{&F::sweep, "sweep", Quantity::parts, Adds::latest, "the keys"},
        Figure{&F::points, "points", Quantity::parts, Adds::latest, "the first key varies slowest"},
        Figure{&F::peer, "peer", Quantity::parts, Adds::latest, "null: a sweep has none", true});
  }
};

}  // namespace tierd
