#include "tiers/flash/bounce_gain.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"
#include "tiers/flash/bandwidth.h"

namespace tierd {
namespace {

constexpr uint64_t kReadBytes = uint64_t{16} << 10;  // a neuron's
constexpr double kSecondsEachWay = 0.03;             // twice in turn
// What fits into caches is as good as a bounce buffer; far beyond them, more makes no difference.
constexpr uint64_t kLeastMemory = uint64_t{64} << 20;
constexpr uint64_t kMostMemory = uint64_t{256} << 20;

}  // namespace

Result<BounceGain> measure_bounce_gain(const std::string& path, const DeviceOptions& device,
                                       uint64_t memory_bytes) {
  if (memory_bytes < kLeastMemory) {
    return Error{Code::invalid_argument, path,
                 fmt::format("is read into {}, less than {}: that stays in caches",
                             format_bytes(static_cast<double>(memory_bytes)),
                             format_bytes(static_cast<double>(kLeastMemory)))};
  }
  TIERD_ASSIGN(ReadPattern pattern, random_reads(path, device, kReadBytes, device.depth * kReadBytes));
  pattern.seconds = kSecondsEachWay;
  const uint64_t far = std::min(memory_bytes, kMostMemory);
  BounceGain gain;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    pattern.seed = seed;
    for (const bool bounced : {false, true}) {
      pattern.memory_bytes = bounced ? 0 : far;
      TIERD_ASSIGN(const ReadRate rate, measure_read(path, pattern));
      double& best = bounced ? gain.bounced_bytes_per_second : gain.direct_bytes_per_second;
      best = std::max(best, rate.bytes_per_second);
    }
  }
  gain.how = fmt::format("measured: {} into it, {} directly; reads of 16 KiB, {} in flight",
                         format_rate(gain.bounced_bytes_per_second),
                         format_rate(gain.direct_bytes_per_second), device.depth);
  return gain;
}

}  // namespace tierd
