// Whether a figure stays what it is from step to step.
#pragma once

#include <cstdint>
#include <span>

namespace tierd {

// The straight line through values of equal distance that lies closest to them (least squares).
struct Trend {
  double mean = 0;
  double slope = 0;  // a step
  double error = 0;  // of the slope, one standard deviation; 0 below three values
};
Trend trend_of(std::span<const uint64_t> values);

}  // namespace tierd
