// Decides which extents of a message one read of the file covers (LLM in a flash, 3.2: larger chunks, which
// include unwanted bytes if those cost less than another request).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agent/extent_table.h"

namespace tierd {

// An extent of a message's unit and its destination.
struct Landing {
  uint32_t unit = 0;  // index in the message's list
  const ExtentRef* extent = nullptr;
  std::byte* into = nullptr;        // multiple of 64; null if the memory is apart
  uint32_t expanded = 0;            // bytes after expansion; 0: it is not expanded
  uint32_t place = 0;               // the destination in the message's memory
  uint32_t copied_by = UINT32_MAX;  // if the memory is apart: the read whose copies move it there

  uint64_t begin() const { return extent->offset; }
  uint64_t end() const { return extent->offset + extent->bytes; }
};

// Extents that may land at their destinations instead of in the bounce buffer.
enum class LandsDirectly : uint8_t {
  blocks,    // offsets in file and in memory are multiples of 4096
  anything,  // the device takes any offset, size and address
  nothing,   // the memory is apart
};

struct JoinRules {
  // The most bytes of a read of several extents; a larger extent is one read all the same.
  uint64_t max_read_bytes = uint64_t{1} << 20;
  uint64_t gap_bytes = 0;     // the longest gap between two extents that is read
  uint64_t bounce_bytes = 0;  // the most bytes of a read through the bounce buffer; 0: there is none
  // The same limit for joined reads through the bounce buffer, so that one read does not take all of it.
  uint64_t max_bounced_bytes = UINT64_MAX;
  // Small extents that could land at their destinations are read through the bounce buffer all the same.
  bool prefer_bounce = false;
  LandsDirectly directly = LandsDirectly::blocks;
};

struct Join {
  uint32_t count = 0;         // units, from the first one on
  uint64_t offset = 0;        // multiple of 4096, unless anything lands directly
  uint64_t bytes = 0;         // likewise, not 0
  uint64_t wasted_bytes = 0;  // bytes that belong to none of the units: alignment and gaps
  bool bounced = false;       // false: the bytes have the same layout in file and memory
};

// Returns whether one read can load this unit under these rules.
bool readable(const Landing& unit, const JoinRules& rules);

// Returns the read of the first unit and of as many following ones as are worth it. `units` are readable, not
// empty, in the order of their offsets.
Join next_join(std::span<const Landing> units, const JoinRules& rules);

// The same without the bounce buffer; count is 0 if the first unit needs it.
Join next_direct_join(std::span<const Landing> units, const JoinRules& rules);

}  // namespace tierd
