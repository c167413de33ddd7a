// Measures whether small reads that could land at their destinations are faster through the bounce buffer.
// Where a disk is emulated, another process copies the data, slowly if the destination is in no cache; our
// own copy runs beside the disk.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/block_device.h"
#include "core/base/result.h"

namespace tierd {

struct BounceGain {
  double direct_bytes_per_second = 0;
  double bounced_bytes_per_second = 0;  // read into the buffer, without the copy
  std::string how = {};                 // "measured: 2.4 GB/s into it, 1.6 GB/s directly …", for reports

  // The margin exceeds the variation of such measurements, and the core's time for the copy.
  bool worth_it() const { return bounced_bytes_per_second > 1.2 * direct_bytes_per_second; }
};

// Measures on the file itself, into memory of `memory_bytes`, at most 1 GiB, which it allocates and frees;
// takes up to some 0.8 s, most of it for that memory. Errors: those of measure_read; invalid_argument for a
// file or a memory that is too small for a result.
Result<BounceGain> measure_bounce_gain(const std::string& path, const DeviceOptions& device,
                                       uint64_t memory_bytes);

}  // namespace tierd
