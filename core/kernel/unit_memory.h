// Where the neurons of a computing unit lie: arena slots and staging blocks in one pool of its agent.
#pragma once

#include <cstdint>
#include <vector>

namespace tierd {

struct UnitMemory {
  uint16_t agent = 0;
  uint16_t pool = 0;
  uint64_t arena_bytes = 0;            // that its cache splits among the editions
  std::vector<uint64_t> arena_offset;  // [editions] where the slots of each begin, bytes
  std::vector<uint32_t> reserved;      // [editions] how many have addresses
  bool resizes = false;                // the agent serves `move` and `resize`
  uint64_t staging_offset = 0;         // where the staging blocks begin, bytes
  uint32_t staging_blocks = 0;
  uint32_t block_bytes = 0;  // at least the largest slot; on summed axes, the slots of a whole run
};

}  // namespace tierd
