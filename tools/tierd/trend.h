// Whether a figure is constant from step to step.
#pragma once

#include <cstdint>
#include <span>

namespace tierd {

// The least-squares line through equidistant values.
struct Trend {
  double mean = 0;
  double slope = 0;  // a step
  double error = 0;  // of the slope, one standard deviation; 0 below three values
};
Trend trend_of(std::span<const uint64_t> values);

}  // namespace tierd
