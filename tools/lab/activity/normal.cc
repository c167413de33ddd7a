#include "tools/lab/activity/normal.h"

#include <boost/math/distributions/normal.hpp>

#include <bit>
#include <cmath>
#include <vector>

#include "tools/lab/activity/portable_math.h"

namespace tierd {
namespace {

const boost::math::normal_distribution<double, BoostPolicy> kNormal;

constexpr uint32_t kKnotBits = 7;
constexpr uint32_t kKnots = 1u << kKnotBits;  // for each power of two
constexpr uint32_t kTailBits = 31;            // of the distance from the nearer end of (0, 1)

// The knot k before a distance, and the share of the way to the next. The first 128 distances are knots.
struct Place {
  uint32_t knot = 0;
  double behind = 0;
};
Place place_of(uint32_t m) {
  if (m < kKnots) return {m, 0};
  const uint32_t shift = static_cast<uint32_t>(std::bit_width(m)) - 1 - kKnotBits;
  const uint32_t rest = m & ((1u << shift) - 1);
  return {shift * kKnots + (m >> shift), static_cast<double>(rest) / static_cast<double>(1u << shift)};
}

// Returns the smallest distance of knot k.
uint64_t distance_of(uint32_t k) {
  if (k < 2 * kKnots) return k;
  const uint32_t shift = k / kKnots - 1;
  return uint64_t{k - shift * kKnots} << shift;
}

std::vector<double> make_tail() {
  std::vector<double> tail;
  const uint32_t last = (kTailBits - kKnotBits + 1) * kKnots;
  for (uint32_t k = 0; k <= last; ++k) {
    const double share = (static_cast<double>(distance_of(k)) + 0.5) * 0x1p-32;
    tail.push_back(without_last_bits(-normal_quantile(share)));
  }
  return tail;
}

}  // namespace

double normal_of(uint32_t uniform) {
  static const std::vector<double> tail = make_tail();
  const bool upper = uniform >> 31 != 0;
  const Place place = place_of(upper ? ~uniform : uniform);
  const double here = tail[place.knot];
  const double z = here + (tail[place.knot + 1] - here) * place.behind;
  return upper ? z : -z;
}

double normal_below(double z) {
  return boost::math::cdf(kNormal, z);
}
double normal_density_at(double z) {
  return boost::math::pdf(kNormal, z);
}
double normal_quantile(double share) {
  return boost::math::quantile(kNormal, share);
}

}  // namespace tierd
