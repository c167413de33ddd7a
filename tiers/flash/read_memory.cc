#include "tiers/flash/read_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "core/base/align.h"

namespace tierd {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

}  // namespace

ReadMemory reserve_read_memory(uint64_t bytes) {
  const uint64_t alignment = bytes >= kHugePage ? kHugePage : kDirectIoAlignment;
  const uint64_t whole = align_up(bytes, alignment);
  ReadMemory memory(static_cast<std::byte*>(std::aligned_alloc(alignment, whole)));
  if (memory == nullptr) return nullptr;
  if (alignment == kHugePage) ::madvise(memory.get(), whole, MADV_HUGEPAGE);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

}  // namespace tierd
