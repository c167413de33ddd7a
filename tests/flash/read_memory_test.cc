#include "tiers/flash/read_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace tierd {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Returns the bytes in huge pages of the mapping that contains `at`.
uint64_t huge_bytes(const std::byte* at) {
  const auto wanted = reinterpret_cast<uintptr_t>(at);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uint64_t begin = 0;
    uint64_t end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      inside = begin <= wanted && wanted < end;
    } else if (inside && line.starts_with("AnonHugePages:")) {
      return std::strtoull(line.c_str() + sizeof "AnonHugePages:", nullptr, 10) * 1024;
    }
  }
  return 0;
}

TEST(ReadMemory, IsZeroAndAligned) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{40960}, kHugePage, 3 * kHugePage + 1}) {
    const ReadMemory memory = reserve_read_memory(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % (bytes < kHugePage ? 4096 : kHugePage), 0u);
    for (uint64_t i = 0; i < bytes; i += 4096) ASSERT_EQ(memory[i], std::byte{0});
    memory[bytes - 1] = std::byte{1};
  }
}

TEST(ReadMemory, MoreThanThereIsIsNone) {
  EXPECT_EQ(reserve_read_memory(uint64_t{1} << 60), nullptr);
}

// The heap would return used memory in small pages.
TEST(ReadMemory, IsInHugePagesWhateverTheHeapHasSeen) {
  constexpr uint64_t kBytes = 2 * kHugePage;
  const auto in_huge_pages = [] {
    const ReadMemory memory = reserve_read_memory(kBytes);
    return memory == nullptr ? 0 : huge_bytes(memory.get());
  };
  const uint64_t at_first = in_huge_pages();
  if (at_first < kBytes) GTEST_SKIP() << "this kernel gives no huge pages now";
  ::mallopt(M_MMAP_THRESHOLD, 256 << 20);  // as it is after the first large free
  void* const lived_in = std::malloc(8 * kBytes);
  ASSERT_NE(lived_in, nullptr);
  std::memset(lived_in, 1, 8 * kBytes);
  void* const keeps_the_heap = std::malloc(64);
  std::free(lived_in);
  EXPECT_GE(in_huge_pages(), at_first);
  std::free(keeps_the_heap);
}

}  // namespace
}  // namespace tierd
