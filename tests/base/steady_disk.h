// A disk whose times can be computed by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/read_curve.h"

namespace tierd {

// Each request takes `each` seconds plus its bytes at `rate` bytes a second.
inline ReadCurve steady_disk(double each, double rate) {
  std::vector<ReadCurve::Point> points;
  for (uint64_t bytes = 4096; bytes <= (1 << 20); bytes *= 2) {
    const auto size = static_cast<double>(bytes);
    points.push_back({bytes, size / (each + size / rate)});
  }
  return ReadCurve(points);
}

}  // namespace tierd
