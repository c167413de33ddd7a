// Memory that reads land in, as the tiers reserve it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace tierd {

struct FreeReadMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using ReadMemory = std::unique_ptr<std::byte[], FreeReadMemory>;

// At a multiple of 4096, in huge pages where it is large enough: a read of 1 MiB into small pages is some 256
// pieces to the driver, and slower (seen: 1.3 GB/s against 2.1 GB/s). Every page is there. Null when there is
// no memory.
ReadMemory reserve_read_memory(uint64_t bytes);

}  // namespace tierd
