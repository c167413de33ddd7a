// How much between two extents is read through instead of reading twice, measured: half of what would take as
// long either way (ReadCurve::Request).
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "tiers/flash/device.h"

namespace tierd {

// A smaller file says nothing: it has fewer places than reads in flight, which would be the same few again
// and again, from the device's own memory. Its runs are joined only where they touch.
inline constexpr uint64_t kLeastGapFile = uint64_t{8} << 20;

struct BreakEven {
  uint64_t bytes = 0;  // see ReadCurve::Request
  std::string how;     // "measured: 10 µs a request, 2.1 GB/s …", a line for reports
};

// Measures it on the file itself, in less than half a second. Errors: those of measure_read; invalid_argument
// for a file so small that it says nothing.
Result<BreakEven> measure_break_even(const std::string& path, const DeviceOptions& device);

}  // namespace tierd
