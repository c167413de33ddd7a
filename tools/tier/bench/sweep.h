// Keys of the configuration with a list of values each: the same is measured with every combination of them.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"

namespace tierd {

struct SweepAxis {
  std::string key;  // as --set takes it
  std::vector<std::string> values;
};
// "cache.k=1,2,3": at least one value, none empty, none twice. Error: invalid_argument.
Result<SweepAxis> parse_axis(const std::string& text);

struct SweepPoint {
  std::vector<std::string> values;     // [axes]
  std::vector<std::string> overrides;  // what all points have in common, then "key=value" of each axis
  Config config;
};

struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;  // the first axis varies slowest
};
// `axes` as parse_axis takes them, one or two; `file` and `overrides` as of load_config. Errors: those of
// parse_axis and load_config; invalid_argument for a key that something else gives a value as well.
Result<Sweep> make_sweep(const std::vector<std::string>& axes, const std::string& file,
                         const std::vector<std::string>& overrides);

// What is said of a value that --set was to bring in names --sweep, where the user wrote it.
Error of_sweep(Error error);

// "cache.k=2, cache.name=lru".
std::string point_name(const Sweep& sweep, const SweepPoint& point);

}  // namespace tierd
