#include "tools/measurement/limit.h"

#include <algorithm>

namespace tierd {
namespace {

constexpr double kClose = 0.2;

double seconds_for(double bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? bytes / bytes_per_second : 0;
}

}  // namespace

bool Limit::close() const {
  const double smaller = std::min(flash_seconds, memory_seconds);
  return smaller > 0 && seconds() - smaller <= kClose * seconds();
}

Limit limit_of(const Traffic& traffic, const Bandwidths& bandwidths) {
  return {seconds_for(traffic.must_read, bandwidths.flash), seconds_for(traffic.weights, bandwidths.memory)};
}

}  // namespace tierd
