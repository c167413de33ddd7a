#include "tiers/flash/read_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "core/base/align.h"

namespace tierd {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

}  // namespace

void FreeReadMemory::operator()(std::byte* memory) const {
  ::munmap(memory, bytes);
}

ReadMemory reserve_read_memory(uint64_t bytes) {
  const uint64_t alignment = bytes >= kHugePage ? kHugePage : kDirectIoAlignment;
  const uint64_t whole = align_up(bytes, alignment);
  const uint64_t slack = alignment - kDirectIoAlignment;
  void* const mapped =
      ::mmap(nullptr, whole + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return {};
  const uint64_t before =
      align_up(reinterpret_cast<uintptr_t>(mapped), alignment) - reinterpret_cast<uintptr_t>(mapped);
  std::byte* const begin = static_cast<std::byte*>(mapped) + before;
  if (before != 0) ::munmap(mapped, before);
  if (before != slack) ::munmap(begin + whole, slack - before);
  if (alignment == kHugePage) ::madvise(begin, whole, MADV_HUGEPAGE);
  std::memset(begin, 0, whole);
  return ReadMemory(begin, FreeReadMemory{whole});
}

}  // namespace tierd
