#include "tiers/dram/reserved_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/base/random.h"

namespace tierd {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHuge = 2u << 20;

uint64_t resident_bytes(const ReservedMemory& memory, uint64_t begin, uint64_t end) {
  std::vector<unsigned char> pages((end - begin) / kPage);
  EXPECT_EQ(mincore(memory.data() + begin, end - begin, pages.data()), 0);
  return kPage *
         static_cast<uint64_t>(std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; }));
}

// Returns the bytes in huge pages that the system counts for this memory, including those not split yet.
uint64_t huge_bytes(const ReservedMemory& memory) {
  std::ifstream in("/proc/self/smaps");
  const auto first = reinterpret_cast<uintptr_t>(memory.data());
  uint64_t bytes = 0;
  bool ours = false;
  for (std::string line; std::getline(in, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream head(line);
    if (head >> std::hex >> begin >> dash >> end && dash == '-')
      ours = begin < first + memory.bytes().size() && end > first;
    if (ours && line.starts_with("AnonHugePages:")) bytes += std::stoull(line.substr(14)) << 10;
  }
  return bytes;
}

TEST(ReservedMemory, ZeroedAndAligned) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{5u << 20}, kHuge, kHuge + 1}) {
    auto memory = ReservedMemory::reserve(bytes);
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(memory->bytes().size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % (bytes < kHuge ? kPage : kHuge), 0u);
    const ReservedMemory::Range all{0, bytes};
    memory->use(bytes, {&all, 1});
    EXPECT_TRUE(std::all_of(memory->bytes().begin(), memory->bytes().end(),
                            [](std::byte b) { return b == std::byte{0}; }));
    memory->bytes().back() = std::byte{1};
  }
  auto none = ReservedMemory::reserve(0);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->bytes().empty());
  none->use(0, {});
}

TEST(ReservedMemory, TooMuchIsAnError) {
  EXPECT_EQ(ReservedMemory::reserve(uint64_t{1} << 62).code(), Code::no_space);
  EXPECT_EQ(ReservedMemory::reserve(UINT64_MAX).code(), Code::no_space);
}

TEST(ReservedMemory, MovesWithItsBytes) {
  auto made = ReservedMemory::reserve(4096);
  ASSERT_TRUE(made.ok());
  ReservedMemory first = std::move(*made);
  first.bytes()[7] = std::byte{9};
  const std::byte* at = first.data();
  ReservedMemory second = std::move(first);
  EXPECT_EQ(second.data(), at);
  ReservedMemory third;
  third = std::move(second);
  EXPECT_EQ(third.bytes()[7], std::byte{9});
}

TEST(ReservedMemory, WhatIsNotInUseIsGone) {
  auto memory = ReservedMemory::reserve(8 * kHuge + 3 * kPage);
  ASSERT_TRUE(memory.ok());
  const uint64_t size = memory->bytes().size();
  const std::vector<ReservedMemory::Range> all = {{0, size}};
  memory->use(size, all);
  EXPECT_EQ(resident_bytes(*memory, 0, size), 0u);  // committed by use, not before
  std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte{7});
  EXPECT_EQ(resident_bytes(*memory, 0, size), size);
  // A part of the first huge page, the third page to the middle of the fourth, and the last pages.
  const std::vector<ReservedMemory::Range> some = {
      {64, 5000}, {2 * kHuge, 3 * kHuge + 100'000}, {8 * kHuge, size}};
  memory->use(size, some);
  const uint64_t end = 3 * kHuge + (100'000 + kPage - 1) / kPage * kPage;
  EXPECT_EQ(resident_bytes(*memory, 0, 2 * kPage), 2 * kPage);
  EXPECT_EQ(resident_bytes(*memory, 2 * kPage, 2 * kHuge), 0u);
  EXPECT_EQ(resident_bytes(*memory, 2 * kHuge, end), end - 2 * kHuge);
  EXPECT_EQ(resident_bytes(*memory, end, 8 * kHuge), 0u);
  EXPECT_EQ(resident_bytes(*memory, 8 * kHuge, size), 3 * kPage);
  // A huge page that is partly in use is split.
  EXPECT_LE(huge_bytes(*memory), kHuge);
  for (const auto& [begin, stop] : some) {
    EXPECT_TRUE(std::all_of(memory->data() + begin, memory->data() + stop,
                            [](std::byte b) { return b == std::byte{7}; }));
  }
  EXPECT_EQ(memory->bytes()[5 * kHuge], std::byte{0});
  // In use again: the pages return empty.
  memory->use(size, all);
  EXPECT_EQ(memory->bytes()[end], std::byte{0});
  memory->bytes()[end] = std::byte{8};
  EXPECT_EQ(memory->bytes()[end - 1], std::byte{7});
  memory->use(size - 3 * kPage, {});
  EXPECT_EQ(resident_bytes(*memory, 0, size), 3 * kPage);
}

// With any changes of use, pages in use keep their bytes, and all others are returned.
TEST(ReservedMemory, WhatIsCommittedIsThereAndWhatItHeldStays) {
  auto memory = ReservedMemory::reserve(4 * kHuge);
  ASSERT_TRUE(memory.ok());
  const ReservedMemory::Range range{kPage + 100, 2 * kHuge + 5};
  memory->use(4 * kHuge, {&range, 1});
  memory->data()[kHuge] = std::byte{7};
  memory->commit(range);
  EXPECT_EQ(resident_bytes(*memory, 0, kPage), 0u);
  EXPECT_EQ(resident_bytes(*memory, kPage, 2 * kHuge + kPage), 2 * kHuge);
  EXPECT_EQ(resident_bytes(*memory, 2 * kHuge + kPage, 4 * kHuge), 0u);
  EXPECT_EQ(memory->data()[kHuge], std::byte{7});
}

TEST(ReservedMemory, WholePagesOfRangesInOrder) {
  constexpr auto kBytes = [](const std::vector<ReservedMemory::Range>& ranges) {
    std::string text;
    for (const auto& [begin, end] : ranges)
      text += std::to_string(begin / kPage) + "-" + std::to_string(end / kPage) + " ";
    return text;
  };
  const auto pages = [&](const std::vector<ReservedMemory::Range>& ranges) {
    const ReservedMemory::Pages of = ReservedMemory::pages_of(ranges);
    return kBytes(of.inner) + "| " + kBytes(of.all);
  };
  EXPECT_EQ(pages({}), "| ");
  EXPECT_EQ(pages({{5, 5}, {kHuge, kHuge}}), "| ");
  EXPECT_EQ(pages({{64, 128}}), "| 0-1 ");
  EXPECT_EQ(pages({{0, 2 * kHuge}}), "0-1024 | 0-1024 ");
  EXPECT_EQ(pages({{kPage + 64, 3 * kHuge - 64}}), "512-1024 | 1-512 512-1024 1024-1536 ");
  EXPECT_EQ(pages({{64, 2 * kPage}, {2 * kPage, 2 * kPage + 64}, {2 * kPage + 64, 5 * kPage}}),
            "| 0-2 2-3 3-5 ");
}

TEST(ReservedMemory, InUseAsANaiveOneWouldHaveIt) {
  constexpr uint64_t kPages = 3 * kHuge / kPage;
  auto memory = ReservedMemory::reserve(kPages * kPage);
  ASSERT_TRUE(memory.ok());
  std::vector<std::byte> naive(kPages * kPage);
  Random random(3);
  for (int round = 0; round < 30; ++round) {
    std::vector<ReservedMemory::Range> ranges;
    for (uint64_t at = random.below(kPages); at < kPages;) {
      const uint64_t end = std::min(kPages, at + 1 + random.below(kPages));
      ranges.push_back({at * kPage, end * kPage - random.below(2) * 64});
      at = end + 1 + random.below(kPages / 2);
    }
    memory->use(kPages * kPage, ranges);
    uint64_t from = 0;
    for (const auto& [begin, end] : ranges) {
      std::fill(naive.data() + from, naive.data() + begin, std::byte{0});
      from = (end + kPage - 1) / kPage * kPage;
    }
    std::fill(naive.begin() + static_cast<ptrdiff_t>(from), naive.end(), std::byte{0});
    for (const auto& [begin, end] : ranges) {
      ASSERT_TRUE(std::equal(memory->data() + begin, memory->data() + end, naive.data() + begin)) << round;
      const uint64_t some = begin + random.below(static_cast<uint32_t>(end - begin));
      std::fill(memory->data() + begin, memory->data() + some, static_cast<std::byte>(round));
      std::fill(naive.data() + begin, naive.data() + some, static_cast<std::byte>(round));
    }
  }
}

}  // namespace
}  // namespace tierd
