// Memory of the flash agent for reads that cannot land where their extents belong: what lies packed in the
// file, or apart in memory. Pages of one block, given out first fit; not for two threads.
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
  // None: nothing can be taken.
  BounceBuffer() = default;
  // `bytes` is a multiple of 4096. Error: no_space.
  static Result<BounceBuffer> create(uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  std::span<std::byte> memory() const { return {memory_.get(), bytes_}; }

  // `bytes`, a multiple of 4096, that lie side by side at a multiple of 4096. Empty when there is no room
  // now; what is no more than all of it fits once everything was given back.
  std::span<std::byte> take(uint64_t bytes);
  void give_back(std::span<std::byte> taken);

 private:
  struct Room {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  uint64_t bytes_ = 0;
  ReadMemory memory_;
  std::vector<Room> free_;  // by offset, never side by side
};

}  // namespace tierd
