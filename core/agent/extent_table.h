// The extents of a store's file, for an agent that reads. The numbers in a `read`'s list are indices here.
// The agent's creator owns the table, which outlives the agent.
#pragma once

#include <cstdint>
#include <span>

namespace tierd {

struct ExtentRef {
  uint64_t offset = 0;    // multiple of 4096, of 64 for packed extents
  uint64_t bytes = 0;     // likewise, not 0
  uint64_t checksum = 0;  // XXH3-64 of all `bytes`
};

using ExtentTable = std::span<const ExtentRef>;

// Neurons whose bytes are in several distant extents: for neuron i of `n`, piece p is extent first + p * n +
// i. A `read` names the neuron by its first extent, first + i, and fetches all pieces; piece p lands `apart`
// * p bytes after the unit's destination.
struct ExtentPieces {
  uint32_t first = 0;
  uint32_t n = 0;
  uint32_t pieces = 1;
  uint32_t apart = 0;  // multiple of 64

  bool begin(uint32_t extent) const { return extent >= first && extent - first < n; }
};

}  // namespace tierd
