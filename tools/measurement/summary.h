// Median and range of a few measurements.
#pragma once

#include <cstddef>
#include <vector>

namespace tierd {

struct Summary {
  double median = 0;  // of an even number, the mean of the middle two
  double least = 0;
  double most = 0;
  size_t count = 0;
};
// All zero if there are no values.
Summary summarize(const std::vector<double>& values);

// Returns the rounds to repeat, ascending: those with a value that differs from the median of all rounds'
// values by more than `tolerance` of it.
std::vector<size_t> find_strays(const std::vector<std::vector<double>>& rounds, double tolerance);

}  // namespace tierd
