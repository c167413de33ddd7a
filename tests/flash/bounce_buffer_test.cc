#include "tiers/flash/bounce_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/random.h"
#include "tests/flash/block.h"

namespace tierd {
namespace {

TEST(BounceBuffer, NoneGivesNothing) {
  BounceBuffer none;
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_TRUE(none.take(kBlock).empty());
  EXPECT_TRUE(BounceBuffer::create(0)->take(kBlock).empty());
}

TEST(BounceBuffer, GivesEachBlockOnceAndAllOfItInTheEnd) {
  constexpr uint64_t kBlocks = 37;
  auto made = BounceBuffer::create(kBlocks * kBlock);
  ASSERT_TRUE(made.ok());
  BounceBuffer& buffer = *made;
  Random random(3);
  std::vector<std::span<std::byte>> taken;
  std::vector<bool> used(kBlocks);
  const auto mark = [&](std::span<std::byte> at, bool use) {
    const auto first = static_cast<size_t>(at.data() - buffer.memory().data()) / kBlock;
    for (size_t i = first; i < first + at.size() / kBlock; ++i) {
      EXPECT_NE(used.at(i), use);
      used[i] = use;
    }
  };
  for (int round = 0; round < 3000; ++round) {
    if (random.below(2) == 0 && !taken.empty()) {
      const size_t i = random.below(static_cast<uint32_t>(taken.size()));
      mark(taken[i], false);
      buffer.give_back(taken[i]);
      taken.erase(taken.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    const uint64_t blocks = 1 + random.below(12);
    const std::span<std::byte> at = buffer.take(blocks * kBlock);
    if (at.empty()) {
      // No run of free blocks is long enough.
      uint64_t run = 0;
      for (const bool in_use : used) {
        run = in_use ? 0 : run + 1;
        EXPECT_LT(run, blocks);
      }
      continue;
    }
    EXPECT_EQ(at.size(), blocks * kBlock);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at.data()) % kBlock, 0u);
    mark(at, true);
    taken.push_back(at);
  }
  for (const std::span<std::byte> at : taken) buffer.give_back(at);
  EXPECT_EQ(buffer.take(kBlocks * kBlock).size(), kBlocks * kBlock);
  EXPECT_TRUE(buffer.take(kBlock).empty());
}

}  // namespace
}  // namespace tierd
