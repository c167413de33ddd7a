// Memory of the flash agent for reads that cannot land at their destinations: extents that are packed in the
// file, or apart in memory. Pages of one block, allocated first fit; used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "tiers/flash/read_memory.h"

namespace tierd {

class BounceBuffer {
 public:
  // An empty buffer: take() always fails.
  BounceBuffer() = default;
  // `bytes` is a multiple of 4096. Error: no_space.
  static Result<BounceBuffer> create(uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  std::span<std::byte> memory() const { return {memory_.get(), bytes_}; }

  // Allocates `bytes` contiguous bytes, a multiple of 4096, at a multiple of 4096. Empty if there is no room
  // now; a request of at most bytes() succeeds once everything was given back.
  std::span<std::byte> take(uint64_t bytes);
  void give_back(std::span<std::byte> taken);

 private:
  struct Room {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  uint64_t bytes_ = 0;
  ReadMemory memory_;
  std::vector<Room> free_;  // by offset, never adjacent
};

}  // namespace tierd
