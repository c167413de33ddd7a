// Rates from normal numbers: p = the quantile of a beta distribution at the normal's share below z, so that
// correlated normal numbers give correlated rates.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/lab/activity/profile.h"

namespace tierd {

// Linear between knots. A rate is within 2e-5 of the exact one for the existing profiles, within 3e-4 at the
// bounds of accepted profiles; the mean of the rates is within 2e-5.
class RateTable {
 public:
  explicit RateTable(const BetaRates& rates);

  // The threshold is the rate as a number of 32 bits; an event below it is active.
  double rate(double z) const;
  uint32_t threshold(double z) const;

 private:
  std::vector<double> knots_;
};

}  // namespace tierd
