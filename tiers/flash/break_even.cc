#include "tiers/flash/break_even.h"

#include <fmt/format.h>

#include "core/base/units.h"
#include "tiers/flash/bandwidth.h"

namespace tierd {
namespace {

constexpr uint64_t kSmallBytes = uint64_t{4} << 10;
constexpr uint64_t kLargeBytes = uint64_t{128} << 10;
constexpr double kSeconds = 0.06;  // of each size
// Fewer places than reads in flight would be the same few again and again, from the device's own memory.
constexpr uint64_t kLeastPlaces = 64;
}  // namespace

BreakEven break_even(uint64_t small_bytes, double small_seconds, uint64_t large_bytes, double large_seconds) {
  BreakEven found;
  if (!(large_seconds > small_seconds)) return found;
  const double more = static_cast<double>(large_bytes - small_bytes);
  const double rate = more / (large_seconds - small_seconds);
  const double request = small_seconds - static_cast<double>(small_bytes) / rate;
  if (!(request > 0)) return found;
  found.request_seconds = request;
  found.bytes_per_second = rate;
  found.bytes = static_cast<uint64_t>(request * rate);
  return found;
}

Result<BreakEven> measure_break_even(const std::string& path, const DeviceOptions& device) {
  const auto seconds_each = [&](uint64_t bytes) -> Result<double> {
    TIERD_ASSIGN(ReadPattern pattern, random_reads(path, device, bytes, kLeastPlaces * kLargeBytes));
    pattern.seconds = kSeconds;
    TIERD_ASSIGN(const ReadRate rate, measure_read(path, pattern));
    return 1 / rate.reads_per_second;
  };
  TIERD_ASSIGN(const double small, seconds_each(kSmallBytes));
  TIERD_ASSIGN(const double large, seconds_each(kLargeBytes));
  BreakEven found = break_even(kSmallBytes, small, kLargeBytes, large);
  found.how = fmt::format("measured: {:.3g} µs a request, {} beyond; reads of 4 and 128 KiB, {} in flight",
                          found.request_seconds * 1e6, format_rate(found.bytes_per_second), device.depth);
  return found;
}

}  // namespace tierd
