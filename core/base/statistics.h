// Statistics of a list of measurements. All are 0 of an empty list.
#pragma once

#include <span>
#include <vector>

namespace tierd {

double mean(std::span<const double> values);

// Returns the median: of an even number of values, the mean of the two in the middle.
double median(std::vector<double> values);

// Returns the value of rank share * (n - 1) in ascending order, rounded down; `share` is in 0 … 1.
double quantile(std::vector<double> values, double share);

}  // namespace tierd
