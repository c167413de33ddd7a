#include "tiers/flash/break_even.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/device/read_curve.h"
#include "tiers/flash/bandwidth.h"

namespace tierd {
namespace {

constexpr uint64_t kSmallBytes = uint64_t{4} << 10;
constexpr uint64_t kLargeBytes = uint64_t{128} << 10;
constexpr double kSeconds = 0.06;  // of each size
// Fewer places than reads in flight would be the same few again and again, from the device's own memory.
constexpr uint64_t kLeastPlaces = 64;

}  // namespace

Result<BreakEven> measure_break_even(const std::string& path, const DeviceOptions& device) {
  std::vector<ReadCurve::Point> points;
  for (const uint64_t bytes : {kSmallBytes, kLargeBytes}) {
    TIERD_ASSIGN(ReadPattern pattern, random_reads(path, device, bytes, kLeastPlaces * kLargeBytes));
    pattern.seconds = kSeconds;
    TIERD_ASSIGN(const ReadRate rate, measure_read(path, pattern));
    points.push_back({bytes, static_cast<double>(bytes) * rate.reads_per_second});
  }
  const ReadCurve::Request request = ReadCurve(std::move(points)).request();
  return BreakEven{
      request.bytes(),
      fmt::format("measured: {:.3g} µs a request, {} beyond; reads of 4 and 128 KiB, {} in flight",
                  request.seconds * 1e6, format_rate(request.bytes_per_second), device.depth)};
}

}  // namespace tierd
