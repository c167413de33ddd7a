// What an agent that reads knows of a store: where each extent lies in its file. The numbers in a `read`'s
// list are indices here. The table belongs to whoever made the agent and outlives it.
#pragma once

#include <cstdint>
#include <span>

namespace tierd {

struct ExtentRef {
  uint64_t offset = 0;    // multiple of 4096, of packed ones of 64
  uint64_t bytes = 0;     // likewise, not 0
  uint64_t checksum = 0;  // XXH3-64 of all `bytes`
};

using ExtentTable = std::span<const ExtentRef>;

}  // namespace tierd
