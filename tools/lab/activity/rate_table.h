// Rates from normal numbers: p = the quantile of a beta distribution at the normal's share below z, so that
// what normal numbers have in common, rates have in common as well.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/lab/activity/profile.h"

namespace tierd {

// Linear between knots. A rate is within 2e-5 of the distribution's own for what the profiles have, within
// 3e-4 at the bounds of what they may have; the rates' mean is within 2e-5.
class RateTable {
 public:
  explicit RateTable(const BetaRates& rates);

  // As a number of 32 bits below which an event is active.
  double rate(double z) const;
  uint32_t threshold(double z) const;

 private:
  std::vector<double> knots_;
};

}  // namespace tierd
