// Keys of the configuration with a list of values each: the tests are run with every combination of them.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"

namespace tierd {

struct SweepAxis {
  std::string key;  // in the syntax of --set
  std::vector<std::string> values;
};
// Parses "cache.k=1,2,3": at least one value, none empty, no duplicates. Error: invalid_argument.
Result<SweepAxis> parse_axis(const std::string& text);

struct SweepPoint {
  std::vector<std::string> values;     // [axes]
  std::vector<std::string> overrides;  // those of all points, then "key=value" of each axis
  Config config;
};

struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;  // the first axis varies slowest
};
// `axes`: one or two, in the syntax of parse_axis; `file` and `overrides`: the arguments of load_config.
// Errors: those of parse_axis and load_config; invalid_argument for a key that has a value from elsewhere
// too.
Result<Sweep> make_sweep(const std::vector<std::string>& axes, const std::string& file,
                         const std::vector<std::string>& overrides);

// Replaces --set by --sweep in an error, since the user wrote the value there.
Error of_sweep(Error error);

// "cache.k=2, cache.name=lru".
std::string point_name(const Sweep& sweep, const SweepPoint& point);

}  // namespace tierd
