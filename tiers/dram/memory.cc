#include "tiers/dram/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/base/align.h"
#include "core/base/units.h"

namespace tierd {
namespace {
constexpr uint64_t kHugePage = 2u << 20;
}

Result<Memory> Memory::reserve(uint64_t bytes, bool huge) {
  if (bytes == 0) return Memory();
  void* start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return Error{
        Code::no_space, "memory",
        fmt::format("cannot reserve {}: {}", format_bytes(static_cast<double>(bytes)), std::strerror(errno))};
  }
  // Where the system hands out huge pages unasked, one at the border could commit what no budget knows of.
  madvise(start, bytes, MADV_NOHUGEPAGE);
  if (huge) {
    const auto first = align_up(reinterpret_cast<uintptr_t>(start), kHugePage);
    const auto end = (reinterpret_cast<uintptr_t>(start) + bytes) / kHugePage * kHugePage;
    if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  }
  return Memory({static_cast<std::byte*>(start), bytes});
}

Memory::~Memory() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

}  // namespace tierd
