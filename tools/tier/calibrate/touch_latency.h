// Measures the time of a single read at places that were not read before, and at the same places again. The
// host of a virtual disk may cache the file, or have to load it first: if the first touch of a file is slower
// than the second, a benchmark that reads it twice overestimates the disk.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"

namespace tierd {

struct TouchLatency {
  struct Pass {
    double median = 0, mean = 0;  // seconds a read
  };
  uint32_t reads = 0;  // of a pass
  Pass first, again;
};

inline constexpr uint64_t kTouchBytes = uint64_t{16} << 10;  // bytes of a read

// Reads up to 400 places all over the file, past the page cache, one after the other, and then once more.
// Errors: not_found, io_error; invalid_argument for a file of less than one read.
Result<TouchLatency> measure_touch(const std::string& path, uint64_t seed);

}  // namespace tierd
