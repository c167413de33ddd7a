#include "tiers/flash/bounce_gain.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/statistics.h"
#include "core/base/units.h"
#include "tiers/flash/bandwidth.h"

namespace tierd {
namespace {

constexpr uint64_t kReadBytes = uint64_t{16} << 10;  // the size of a neuron
constexpr double kSecondsEachWay = 0.025;            // one measurement; both ways alternate
constexpr size_t kRounds = 3;
// Memory that fits into caches is as fast as a bounce buffer, and a server's caches hold hundreds of MB; far
// beyond them, the size makes no difference.
constexpr uint64_t kLeastMemory = uint64_t{64} << 20;
constexpr uint64_t kMostMemory = uint64_t{1} << 30;

}  // namespace

Result<BounceGain> measure_bounce_gain(const std::string& path, const DeviceOptions& device,
                                       uint64_t memory_bytes) {
  if (memory_bytes < kLeastMemory) {
    return Error{Code::invalid_argument, path,
                 fmt::format("is read into {}, expected at least {}, because less stays in caches",
                             format_bytes(static_cast<double>(memory_bytes)),
                             format_bytes(static_cast<double>(kLeastMemory)))};
  }
  TIERD_ASSIGN(ReadPattern pattern, random_reads(path, device, kReadBytes, device.depth * kReadBytes));
  pattern.seconds = kSecondsEachWay;
  const uint64_t far = std::min(memory_bytes, kMostMemory);
  std::vector<double> direct, bounced;
  for (size_t round = 0; round < kRounds; ++round) {
    pattern.seed = round + 1;
    for (const bool by_buffer : {false, true}) {
      pattern.memory_bytes = by_buffer ? 0 : far;
      TIERD_ASSIGN(const ReadRate rate, measure_read(path, pattern));
      (by_buffer ? bounced : direct).push_back(rate.bytes_per_second);
    }
  }
  BounceGain gain;
  // The median, since a disk is unusually fast or stalls now and then.
  gain.direct_bytes_per_second = median(direct);
  gain.bounced_bytes_per_second = median(bounced);
  gain.how = fmt::format("measured: {} into it, {} directly; reads of 16 KiB, {} in flight",
                         format_rate(gain.bounced_bytes_per_second),
                         format_rate(gain.direct_bytes_per_second), device.depth);
  return gain;
}

}  // namespace tierd
