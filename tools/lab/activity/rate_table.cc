#include "tools/lab/activity/rate_table.h"

#include <boost/math/distributions/beta.hpp>

#include <algorithm>
#include <cmath>

#include "tools/lab/activity/normal.h"
#include "tools/lab/activity/portable_math.h"

namespace tierd {
namespace {

constexpr double kPerUnit = 128;

}  // namespace

RateTable::RateTable(const BetaRates& rates) {
  const boost::math::beta_distribution<double, BoostPolicy> beta(rates.a, rates.b);
  const auto last = static_cast<int>(kMostNormal * kPerUnit);
  for (int k = -last; k <= last + 1; ++k) {
    const double z = k / kPerUnit;
    // Computed from the nearer end, because a value near 1 has lost its digits.
    const double p = z < 0 ? boost::math::quantile(beta, normal_below(z))
                           : boost::math::quantile(boost::math::complement(beta, normal_below(-z)));
    knots_.push_back(without_last_bits(p));
  }
}

double RateTable::rate(double z) const {
  const double at = (std::clamp(z, -kMostNormal, kMostNormal) + kMostNormal) * kPerUnit;
  const auto knot = static_cast<size_t>(at);
  return knots_[knot] + (knots_[knot + 1] - knots_[knot]) * (at - static_cast<double>(knot));
}

uint32_t RateTable::threshold(double z) const {
  return static_cast<uint32_t>(std::min(rate(z) * 0x1p32, 0x1p32 - 1));
}

}  // namespace tierd
