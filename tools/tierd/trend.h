// Whether a figure is constant from step to step.
#pragma once

#include <cstdint>
#include <span>

#include "core/report/figure.h"

namespace tierd {

// The least-squares line through equidistant values.
struct Trend {
  double mean = 0;
  double slope = 0;  // a step
  double error = 0;  // of the slope, one standard deviation; 0 below three values

  static constexpr auto figures() {
    using enum Adds;
    return std::tuple(
        Figure{&Trend::mean, "mean_bytes", Quantity::bytes, latest, "mean of the steps"},
        Figure{&Trend::slope, "bytes_per_step", Quantity::bytes, latest, "growth a step"},
        Figure{&Trend::error, "error", Quantity::bytes, latest, "standard error of the growth"});
  }
};
Trend trend_of(std::span<const uint64_t> values);

}  // namespace tierd
