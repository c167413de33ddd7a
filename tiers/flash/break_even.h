// Measures the longest gap between two extents that is worth reading: half of the break-even with a second
// request (ReadCurve::Request).
#pragma once

#include <cstdint>
#include <string>

#include "core/base/block_device.h"
#include "core/base/result.h"

namespace tierd {

// A smaller file gives no result: it has fewer places than reads in flight, so that the reads repeat and come
// from the device's own memory. Its runs are joined only if they touch.
inline constexpr uint64_t kLeastGapFile = uint64_t{8} << 20;

struct BreakEven {
  uint64_t bytes = 0;  // see ReadCurve::Request
  std::string how;     // "measured: 10 µs a request, 2.1 GB/s …", a line for reports
};

// Measures on the file itself, in less than half a second. Errors: those of measure_read; invalid_argument
// for a file that is too small for a result.
Result<BreakEven> measure_break_even(const std::string& path, const DeviceOptions& device);

}  // namespace tierd
