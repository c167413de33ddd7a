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

// Neurons whose bytes lie in several extents, far apart: of neuron i of `n`, piece p is extent first + p * n
// + i. A `read` names the neuron by its first one, extent first + i, and brings all, piece p to `apart` * p
// bytes behind the unit's destination.
struct ExtentPieces {
  uint32_t first = 0;
  uint32_t n = 0;
  uint32_t pieces = 1;
  uint32_t apart = 0;  // multiple of 64

  bool begin(uint32_t extent) const { return extent >= first && extent - first < n; }
};

}  // namespace tierd
