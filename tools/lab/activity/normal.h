// Normal numbers from uniform ones, by a table instead of the library's logarithm: libraries differ in the
// last bit, and a seed must give the same values everywhere.
#pragma once

#include <cstdint>

namespace tierd {

// Returns the standard normal number with a share of (uniform + 1/2) / 2^32 below it, within 1e-5: linear
// between knots, of which each power of two towards the tails has 128.
double normal_of(uint32_t uniform);
inline constexpr double kMostNormal = 6.5;  // bound of normal_of's absolute values

// The distribution's share below `z`, its density, and the inverse of the former.
double normal_below(double z);
double normal_density_at(double z);
double normal_quantile(double share);

}  // namespace tierd
