// Whether small reads that could land where they belong come faster by way of the bounce buffer. Where a disk
// is emulated, somebody else copies what it brings, and is slow at it where the destination is in no cache;
// our own copy runs beside the disk.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "tiers/flash/device.h"

namespace tierd {

struct BounceGain {
  double direct_bytes_per_second = 0;
  double bounced_bytes_per_second = 0;  // into the buffer, without the copy
  std::string how = {};                 // "measured: 2.4 GB/s into it, 1.6 GB/s directly …", for reports

  // By more than what such measurements vary, and than a disk's time is cheaper than a core's.
  bool worth_it() const { return bounced_bytes_per_second > 1.2 * direct_bytes_per_second; }
};

// Measures it on the file itself, into memory as large as `memory_bytes`, at most 1 GiB, which it takes and
// gives back; up to some 0.8 s, most of it for that memory. Errors: those of measure_read; invalid_argument
// for a file or a memory so small that they say nothing.
Result<BounceGain> measure_bounce_gain(const std::string& path, const DeviceOptions& device,
                                       uint64_t memory_bytes);

}  // namespace tierd
