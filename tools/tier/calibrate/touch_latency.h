// How long one read alone takes, of places that nobody has read before and of the same places again. Below a
// virtual disk its host may keep what was read, or have to fetch it first: a file whose first touch takes
// longer than its second is measured too fast by whoever reads it twice.
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

inline constexpr uint64_t kTouchBytes = uint64_t{16} << 10;  // of a read

// Reads up to 400 places all over the file, past the page cache, one after the other, then the same ones once
// more. Errors: not_found, io_error; invalid_argument for a file of less than one read.
Result<TouchLatency> measure_touch(const std::string& path, uint64_t seed);

}  // namespace tierd
