// How much may lie between two extents for one read of both to be faster than two: what a request costs, in
// bytes (LLM in a flash, 4: "the break-even").
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "tiers/flash/device.h"

namespace tierd {

struct BreakEven {
  uint64_t bytes = 0;  // request_seconds * bytes_per_second
  // With `depth` reads in flight, n bytes take request_seconds + n / bytes_per_second of the device's time.
  double request_seconds = 0;
  double bytes_per_second = 0;
  std::string how;  // "measured: 10 µs a request, 2.1 GB/s …", a line for reports
};

// The line through what reads of two sizes take each, in seconds of the device's time. Where the larger one
// takes no longer than the smaller one, or nothing remains for the request: 0.
BreakEven break_even(uint64_t small_bytes, double small_seconds, uint64_t large_bytes, double large_seconds);

// Measures it on the file itself, in less than 0.2 s. Errors: those of measure_read; invalid_argument for a
// file so small that it says nothing.
Result<BreakEven> measure_break_even(const std::string& path, const DeviceOptions& device);

}  // namespace tierd
