// Memory in which reads land, allocated as the tiers reserve theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tierd {

struct FreeReadMemory {
  uint64_t bytes = 0;
  void operator()(std::byte* memory) const;
};
using ReadMemory = std::unique_ptr<std::byte[], FreeReadMemory>;

// At a multiple of 4096, in huge pages if it is large enough: each small page is a separate piece for the
// driver, and a separate copy for a virtual disk (measured: 1.0 GB/s instead of 2.5). Mapped afresh, never
// from the heap, whose recycled memory is in small pages. All pages are committed. Null if there is no
// memory.
ReadMemory reserve_read_memory(uint64_t bytes);

}  // namespace tierd
