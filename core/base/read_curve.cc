#include "core/base/read_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"

namespace tierd {
namespace {

constexpr double kBlock = 4096;
constexpr double kPackedAlignment = 64;    // alignment of packed channels
constexpr double kNeverCapped = 1u << 30;  // bytes of a read, more than any has

}  // namespace

ReadCurve::ReadCurve(std::vector<Point> points) : points_(std::move(points)) {
  TIERD_CHECK(!points_.empty());
}

// The time is two straight lines, so two points describe it: the smallest read, and the size from which on
// `cap` determines the time.
ReadCurve ReadCurve::of_requests(double seconds, double rate, double cap) {
  TIERD_CHECK(seconds >= 0 && cap > 0 && cap <= rate);
  const double slower = 1 / cap - 1 / rate;
  const double capped = seconds == 0 ? 0
                        : slower > 0 ? std::min(seconds / slower, kNeverCapped)
                                     : kNeverCapped;
  if (capped <= kBlock) return ReadCurve({{static_cast<uint64_t>(kBlock), cap}});
  const double last = std::ceil(capped);
  return ReadCurve({{static_cast<uint64_t>(kBlock), kBlock / (seconds + kBlock / rate)},
                    {static_cast<uint64_t>(last), last / (seconds + last / rate)}});
}

double ReadCurve::seconds_each(double bytes) const {
  const auto seconds_of = [](const Point& point) {
    return static_cast<double>(point.bytes) / point.bytes_per_second;
  };
  const auto after = std::ranges::find_if(
      points_, [&](const Point& point) { return static_cast<double>(point.bytes) >= bytes; });
  if (after == points_.begin()) return seconds_of(*after);
  if (after == points_.end()) return bytes / points_.back().bytes_per_second;
  const Point& before = *(after - 1);
  const auto begin = static_cast<double>(before.bytes);
  const double share = (bytes - begin) / (static_cast<double>(after->bytes) - begin);
  return seconds_of(before) + share * (seconds_of(*after) - seconds_of(before));
}

ReadCurve::Request ReadCurve::request() const {
  constexpr double kSmall = 4096, kLarge = 131072;
  const double small = seconds_each(kSmall), large = seconds_each(kLarge);
  if (!(large > small)) return {};
  const double rate = (kLarge - kSmall) / (large - small);
  const double seconds = small - kSmall / rate;
  return seconds > 0 ? Request{seconds, rate} : Request{};
}

double ReadCurve::seconds(double total, uint64_t bytes, bool aligned) const {
  const auto size = static_cast<double>(bytes);
  const double touched = aligned ? std::ceil(size / kBlock) * kBlock : size + kBlock - kPackedAlignment;
  return total / size * seconds_each(touched);
}

}  // namespace tierd
