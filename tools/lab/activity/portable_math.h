// The use of Boost.Math for drawn bits, which must be the same on every machine.
#pragma once

#include <boost/math/policies/policy.hpp>

#include <cmath>

namespace tierd {

// Double precision, so that results do not depend on a machine's long double; no exceptions, since profiles
// are checked before.
using BoostPolicy = boost::math::policies::policy<
    boost::math::policies::promote_double<false>,
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::underflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

// Rounds a knot of a table to drop the last bits, in which mathematical libraries differ.
inline double without_last_bits(double knot) {
  return std::nearbyint(knot * 0x1p30) * 0x1p-30;
}

}  // namespace tierd
