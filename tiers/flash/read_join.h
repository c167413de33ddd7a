// Which extents of a message one read of the file brings (LLM in a flash, 3.2: larger chunks, read through
// what is not wanted where that costs less than another request).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/agent/extent_table.h"

namespace tierd {

// A unit of a message: what it brings, and where to.
struct Landing {
  uint32_t unit = 0;  // index in the message's list
  const ExtentRef* extent = nullptr;
  std::byte* into = nullptr;        // multiple of 64; null where the memory is apart
  uint32_t expanded = 0;            // bytes that it becomes there; 0: it stays as it is
  uint32_t place = 0;               // of the same in the message's memory
  uint32_t copied_by = UINT32_MAX;  // where the memory is apart, the read whose copies bring it there

  uint64_t begin() const { return extent->offset; }
  uint64_t end() const { return extent->offset + extent->bytes; }
};

// What may land where it belongs instead of in the bounce buffer.
enum class LandsDirectly : uint8_t {
  blocks,    // whose place in the file and in memory are multiples of 4096
  anything,  // the device takes any offset, size and address
  nothing,   // the memory is apart
};

struct JoinRules {
  // A read of several extents has at most so many bytes; a larger extent is one read all the same.
  uint64_t max_read_bytes = uint64_t{1} << 20;
  uint64_t gap_bytes = 0;     // what is read through at most between two extents
  uint64_t bounce_bytes = 0;  // the most that a read through the bounce buffer brings; 0: there is none
  // As max_read_bytes, of those: one read is not to keep others from the bounce buffer.
  uint64_t max_bounced_bytes = UINT64_MAX;
  // Small extents that could land where they belong are read through the bounce buffer all the same.
  bool prefer_bounce = false;
  LandsDirectly directly = LandsDirectly::blocks;
};

struct Join {
  uint32_t count = 0;         // units, from the first one on
  uint64_t offset = 0;        // multiple of 4096, but where anything lands directly
  uint64_t bytes = 0;         // likewise, not 0
  uint64_t wasted_bytes = 0;  // of them belong to none of the units: alignment and gaps
  bool bounced = false;       // else the bytes lie in the file as they are to lie in memory
};

// Whether one read can bring this unit under these rules.
bool readable(const Landing& unit, const JoinRules& rules);

// The read of the first unit, and of as many of those behind it as are worth it. `units` are readable, not
// empty, in the order of their offsets.
Join next_join(std::span<const Landing> units, const JoinRules& rules);

// The same without the bounce buffer: no unit (count 0) where the first one needs it.
Join next_direct_join(std::span<const Landing> units, const JoinRules& rules);

}  // namespace tierd
