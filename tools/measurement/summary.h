// Median and range of a few measurements.
#pragma once

#include <cstddef>
#include <vector>

#include "core/report/figure.h"

namespace tierd {

struct Summary {
  double median = 0;  // of an even number, the mean of the middle two
  double least = 0;
  double most = 0;
  size_t count = 0;

  static constexpr auto figures() {  // in the unit of the figure that is summarized
    using F = Summary;
    return std::tuple(Figure{&F::median, "median", Quantity::parts, Adds::latest, "of all"},
                      Figure{&F::least, "least", Quantity::parts, Adds::latest, "of all"},
                      Figure{&F::most, "most", Quantity::parts, Adds::latest, "of all"});
  }
};
// All zero if there are no values.
Summary summarize(const std::vector<double>& values);

// Returns the rounds to repeat, ascending: those with a value that differs from the median of all rounds'
// values by more than `tolerance` of it.
std::vector<size_t> find_strays(const std::vector<std::vector<double>>& rounds, double tolerance);

}  // namespace tierd
