#include "tiers/dram/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tierd {
namespace {

TEST(Memory, ZeroedAndAligned) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{5u << 20}}) {
    for (const bool huge : {false, true}) {
      auto memory = Memory::reserve(bytes, huge);
      ASSERT_TRUE(memory.ok());
      EXPECT_EQ(memory->bytes().size(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 4096, 0u);
      EXPECT_TRUE(std::all_of(memory->bytes().begin(), memory->bytes().end(),
                              [](std::byte b) { return b == std::byte{0}; }));
    }
  }
  const auto none = Memory::reserve(0, true);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->bytes().empty());
}

TEST(Memory, TooMuchIsAnError) {
  const auto memory = Memory::reserve(uint64_t{1} << 62, false);
  EXPECT_EQ(memory.code(), Code::no_space);
}

TEST(Memory, MovesWithItsBytes) {
  auto made = Memory::reserve(4096, false);
  ASSERT_TRUE(made.ok());
  Memory first = std::move(*made);
  first.bytes()[7] = std::byte{9};
  const std::byte* at = first.data();
  Memory second = std::move(first);
  EXPECT_EQ(second.data(), at);
  Memory third;
  third = std::move(second);
  EXPECT_EQ(third.bytes()[7], std::byte{9});
}

}  // namespace
}  // namespace tierd
