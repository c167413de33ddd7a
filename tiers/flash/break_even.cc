#include "tiers/flash/break_even.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numbers>
#include <utility>
#include <vector>

#include "core/base/read_curve.h"
#include "core/base/units.h"
#include "tiers/flash/bandwidth.h"

namespace tierd {
namespace {

constexpr uint64_t kSmallBytes = uint64_t{4} << 10;
constexpr uint64_t kLargeBytes = uint64_t{128} << 10;
// Other load of the machine makes a round slower, never faster: the best round is the disk's own. Single
// rounds of 60 ms each gave 20 to 36 kB beside a compiler.
constexpr uint32_t kGapRounds = 8;
constexpr double kSeconds = 0.02;  // for each size in a round

// Rounds to the nearest power of two by ratio. Around the best gap the time is flat (16, 32 and 64 KiB: 7.3,
// 7.7 and 7.4 tokens/s of the 1.1B shape), so finer digits are noise.
uint64_t rounded(uint64_t bytes) {
  if (bytes == 0) return 0;
  const uint64_t below = std::bit_floor(bytes);
  return static_cast<double>(bytes) < static_cast<double>(below) * std::numbers::sqrt2 ? below : 2 * below;
}

}  // namespace

Result<BreakEven> measure_break_even(const std::string& path, const DeviceOptions& device) {
  std::vector<ReadCurve::Point> points = {{kSmallBytes, 0}, {kLargeBytes, 0}};
  for (uint32_t round = 0; round < kGapRounds; ++round) {
    for (ReadCurve::Point& point : points) {
      TIERD_ASSIGN(ReadPattern pattern, random_reads(path, device, point.bytes, kLeastGapFile));
      pattern.seconds = kSeconds;
      TIERD_ASSIGN(const ReadRate rate, measure_read(path, pattern));
      point.bytes_per_second =
          std::max(point.bytes_per_second, static_cast<double>(point.bytes) * rate.reads_per_second);
    }
  }
  const ReadCurve::Request request = ReadCurve(std::move(points)).request();
  return BreakEven{
      rounded(request.gap_bytes()),
      fmt::format("measured: {:.3g} µs a request, {} beyond; reads of 4 and "
                  "128 KiB, {} in flight, the best of {} rounds",
                  request.seconds * 1e6, format_rate(request.bytes_per_second), device.depth, kGapRounds)};
}

}  // namespace tierd
