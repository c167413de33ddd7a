#include "tiers/dram/reserved_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/align.h"
#include "core/base/units.h"

namespace tierd {
namespace {

constexpr uint64_t kHugePage = 2u << 20;

// The pages of a range: small ones from `begin`, huge ones from `first_huge` to `end_huge`, small ones up to
// `end`.
struct PagesOfRange {
  explicit PagesOfRange(const ReservedMemory::Range& range)
      : begin(align_down(range.begin, kPageBytes)),
        end(align_up(range.end, kPageBytes)),
        first_huge(std::min(align_up(range.begin, kHugePage), end)),
        end_huge(std::max(align_down(range.end, kHugePage), first_huge)) {}
  uint64_t begin, end, first_huge, end_huge;
};

}  // namespace

Result<ReservedMemory> ReservedMemory::reserve(uint64_t bytes) {
  if (bytes == 0) return ReservedMemory();
  const auto fail = [&](int error) {
    return Error{
        Code::no_space, "memory",
        fmt::format("cannot reserve {}: {}", format_bytes(static_cast<double>(bytes)), std::strerror(error))};
  };
  if (bytes > SIZE_MAX - 2 * kHugePage) return fail(ENOMEM);
  // Addresses for one more huge page, so that the memory can begin at a multiple of a huge page.
  const uint64_t before = bytes < kHugePage ? 0 : kHugePage;
  const uint64_t whole = align_up(bytes, kPageBytes) + before;
  void* const start =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return fail(errno);
  auto* first = static_cast<std::byte*>(start);
  if (before != 0) {
    const auto address = reinterpret_cast<uintptr_t>(start);
    const uint64_t skipped = align_up(address, kHugePage) - address;
    if (skipped != 0) munmap(first, skipped);
    if (skipped != before) munmap(first + skipped + whole - before, before - skipped);
    first += skipped;
  }
  // If the system assigns huge pages by default, one at a border could commit bytes that no budget counts.
  madvise(first, bytes, MADV_NOHUGEPAGE);
  return ReservedMemory({first, bytes});
}

ReservedMemory::~ReservedMemory() {
  if (!memory_.empty()) munmap(memory_.data(), align_up(memory_.size(), kPageBytes));
}

void ReservedMemory::use(uint64_t bytes, std::span<const Range> ranges) {
  uint64_t given_back = 0;  // all pages before it are done
  for (const Range& range : ranges) {
    if (range.begin == range.end) continue;
    const PagesOfRange pages(range);
    give_back(given_back, pages.begin);
    use_small_pages(pages.begin, pages.first_huge);
    if (pages.first_huge != pages.end_huge)
      madvise(data() + pages.first_huge, pages.end_huge - pages.first_huge, MADV_HUGEPAGE);
    use_small_pages(pages.end_huge, pages.end);
    given_back = pages.end;
  }
  give_back(given_back, align_up(bytes, kPageBytes));
}

ReservedMemory::Pages ReservedMemory::pages_of(std::span<const Range> ranges) {
  Pages all;
  uint64_t named = 0;  // all pages before it have been added
  const auto add = [&](uint64_t begin, uint64_t end) {
    begin = std::max(begin, named);
    if (begin >= end) return;
    all.all.push_back({begin, end});
    named = end;
  };
  for (const Range& range : ranges) {
    if (range.begin == range.end) continue;
    const PagesOfRange pages(range);
    add(pages.begin, pages.first_huge);
    if (pages.first_huge != pages.end_huge) all.inner.push_back({pages.first_huge, pages.end_huge});
    add(pages.first_huge, pages.end_huge);
    add(pages.end_huge, pages.end);
  }
  return all;
}

void ReservedMemory::commit(const Range& range) {
  const uint64_t begin = align_down(range.begin, kPageBytes);
  madvise(data() + begin, align_up(range.end, kPageBytes) - begin, MADV_POPULATE_WRITE);
}

// Gives back whole pages.
void ReservedMemory::give_back(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  madvise(data() + begin, end - begin, MADV_NOHUGEPAGE);
  madvise(data() + begin, end - begin, MADV_DONTNEED);
}

// For a part of a huge page of which the rest is not in use. If all of it was in use, the system keeps the
// huge page until memory is short, even after a part is given back; so the part in use is copied to small
// pages.
void ReservedMemory::use_small_pages(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  madvise(data() + begin, end - begin, MADV_NOHUGEPAGE);
  if (!resident(begin, end)) return;
  const std::vector<std::byte> kept(data() + begin, data() + std::min<uint64_t>(end, memory_.size()));
  madvise(data() + begin, end - begin, MADV_DONTNEED);
  std::copy(kept.begin(), kept.end(), data() + begin);
}

bool ReservedMemory::resident(uint64_t begin, uint64_t end) const {
  std::vector<unsigned char> pages((end - begin) / kPageBytes);
  if (mincore(data() + begin, end - begin, pages.data()) != 0) return false;
  return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
}

}  // namespace tierd
