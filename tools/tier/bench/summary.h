// A few measurements of one thing, in a line.
#pragma once

#include <cstddef>
#include <vector>

namespace tierd {

struct Summary {
  double median = 0;  // of an even number, the mean of the two in the middle
  double least = 0;
  double most = 0;
  size_t count = 0;
};
// All zero for no values.
Summary summarize(std::vector<double> values);

// Which rounds to measure again: those with a value that differs from the median of all rounds' values by
// more than `tolerance` of it. Ascending.
std::vector<size_t> find_strays(const std::vector<std::vector<double>>& rounds, double tolerance);

}  // namespace tierd
