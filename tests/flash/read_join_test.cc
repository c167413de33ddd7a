#include "tiers/flash/read_join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/base/random.h"
#include "tests/flash/block.h"

namespace tierd {
namespace {

// Units whose destinations are only addresses: nothing is written there.
class Units {
 public:
  void add(uint64_t offset, uint64_t bytes, uint64_t into) {
    table_.push_back({.offset = offset, .bytes = bytes});
    into_.push_back(into);
  }
  std::vector<Landing> landings() const {
    std::vector<Landing> all;
    for (uint32_t i = 0; i < table_.size(); ++i)
      all.push_back({i, &table_[i], reinterpret_cast<std::byte*>(kBase + into_[i])});
    return all;
  }

 private:
  static constexpr uintptr_t kBase = uintptr_t{1} << 30;
  std::vector<ExtentRef> table_;
  std::vector<uint64_t> into_;
};

TEST(ReadJoin, BlocksSideBySideLandDirectly) {
  Units units;
  units.add(0, kBlock, 0);
  units.add(kBlock, 2 * kBlock, kBlock);
  units.add(3 * kBlock, kBlock, 3 * kBlock);
  units.add(4 * kBlock, kBlock, 9 * kBlock);  // elsewhere in memory
  const auto all = units.landings();
  for (const uint64_t bounce : {uint64_t{0}, 4 * kBlock}) {
    const Join join = next_join(all, {.bounce_bytes = bounce});
    EXPECT_EQ(join.count, 3u);
    EXPECT_FALSE(join.bounced);
    EXPECT_EQ(join.bytes, 4 * kBlock);
    EXPECT_EQ(join.wasted_bytes, 0u);
  }
  // With room for all of it, copying saves a request.
  const Join join = next_join(all, {.bounce_bytes = 5 * kBlock});
  EXPECT_EQ(join.count, 4u);
  EXPECT_TRUE(join.bounced);
  EXPECT_EQ(next_join(all, {.max_read_bytes = 3 * kBlock}).count, 2u);
  EXPECT_EQ(next_join(all, {.max_read_bytes = 1}).count, 1u);
}

// The block in which one extent ends and the next begins is read once.
TEST(ReadJoin, PackedExtentsOfOneBlockAreOneRead) {
  Units units;
  units.add(64, 128, 64);
  units.add(192, 4032, 4096);  // into the next block
  units.add(8192, 64, 0);      // adjacent to that
  const Join join = next_join(units.landings(), {.bounce_bytes = uint64_t{1} << 20});
  EXPECT_EQ(join.count, 3u);
  EXPECT_TRUE(join.bounced);
  EXPECT_EQ(join.offset, 0u);
  EXPECT_EQ(join.bytes, 3 * kBlock);
  EXPECT_EQ(join.wasted_bytes, 3 * kBlock - 128 - 4032 - 64);
}

TEST(ReadJoin, GapsOfEverySizeAroundTheBreakEven) {
  for (uint64_t gap = 0; gap <= 40 * kBlock; gap += 64) {
    Units units;
    units.add(kBlock - 64, 128, 0);  // two blocks
    units.add(kBlock + 64 + gap, 192, 4096);
    const uint64_t second = (kBlock + 64 + gap) / kBlock * kBlock;
    const uint64_t between = second > 2 * kBlock ? second - 2 * kBlock : 0;
    for (const uint64_t limit :
         {uint64_t{0}, uint64_t{1}, kBlock - 1, kBlock, kBlock + 1, 17 * kBlock, uint64_t{100} << 10}) {
      const Join join = next_join(units.landings(), {.gap_bytes = limit, .bounce_bytes = uint64_t{1} << 20});
      ASSERT_EQ(join.count, between <= limit ? 2u : 1u) << gap << " with " << limit;
      ASSERT_EQ(join.wasted_bytes, join.bytes - (join.count == 2 ? 320 : 128));
    }
  }
}

TEST(ReadJoin, TheSameExtentTwiceIsReadOnce) {
  Units units;
  units.add(64, 640, 0);
  units.add(64, 640, 640);
  const Join join = next_join(units.landings(), {.bounce_bytes = kBlock});
  EXPECT_EQ(join.count, 2u);
  EXPECT_EQ(join.bytes, kBlock);
  EXPECT_EQ(join.wasted_bytes, kBlock - 640);
}

TEST(ReadJoin, LargeBlocksAreNotCopied) {
  Units units;
  units.add(0, 32 * kBlock, 0);
  units.add(32 * kBlock, 32 * kBlock, 64 * kBlock);
  const Join join = next_join(units.landings(), {.gap_bytes = kBlock, .bounce_bytes = uint64_t{4} << 20});
  EXPECT_EQ(join.count, 1u);
  EXPECT_FALSE(join.bounced);
}

TEST(ReadJoin, SmallBlocksMayPreferTheBounceBuffer) {
  Units units;
  units.add(0, 4 * kBlock, 0);
  units.add(20 * kBlock, 4 * kBlock, 4 * kBlock);
  units.add(40 * kBlock, 17 * kBlock, 8 * kBlock);  // too large to be copied
  const auto all = units.landings();
  for (const uint64_t bounce : {uint64_t{0}, 3 * kBlock, 4 * kBlock, 64 * kBlock}) {
    const JoinRules rules = {.bounce_bytes = bounce, .prefer_bounce = true};
    const Join join = next_join(all, rules);
    EXPECT_EQ(join.count, 1u);
    EXPECT_EQ(join.bytes, 4 * kBlock);
    EXPECT_EQ(join.bounced, bounce >= 4 * kBlock);
    EXPECT_FALSE(next_direct_join(all, rules).bounced);
    EXPECT_FALSE(next_join(std::span(all).subspan(2), rules).bounced);
  }
}

TEST(ReadJoin, WhatNeedsTheBounceBufferHasNoDirectRead) {
  Units units;
  units.add(64, kBlock, 0);
  EXPECT_EQ(next_direct_join(units.landings(), {.bounce_bytes = 4 * kBlock}).count, 0u);
}

TEST(ReadJoin, WhatCannotBeRead) {
  Units units;
  units.add(0, 2 * kBlock, 64);  // its destination is not aligned to a block
  units.add(64, 2 * kBlock, 0);  // in three blocks
  units.add(0, 2 * kBlock, kBlock);
  units.add(0, 0, 0);
  units.add(32, 64, 0);
  const auto all = units.landings();
  const auto readable_with = [&](uint64_t bounce) {
    std::vector<bool> can;
    for (const Landing& unit : all) can.push_back(readable(unit, {.bounce_bytes = bounce}));
    return can;
  };
  EXPECT_EQ(readable_with(0), (std::vector<bool>{false, false, true, false, false}));
  EXPECT_EQ(readable_with(2 * kBlock), (std::vector<bool>{true, false, true, false, false}));
  EXPECT_EQ(readable_with(3 * kBlock), (std::vector<bool>{true, true, true, false, false}));
}

// With any rules, each unit is in one read, and no read is larger than allowed or needed.
TEST(ReadJoin, RandomListsAreReadWholeAndOnce) {
  Random random(5);
  for (int round = 0; round < 2000; ++round) {
    Units made;
    uint64_t at = 0;
    uint64_t into = 0;
    const bool blocks = random.below(3) == 0;
    const uint64_t unit = blocks ? kBlock : 64;
    for (uint32_t n = 1 + random.below(20); n > 0; --n) {
      at += random.below(2) == 0 ? 0 : unit * random.below(blocks ? 9 : 400);
      into += random.below(2) == 0 ? 0 : unit * random.below(5);
      const uint64_t bytes = unit * (1 + random.below(blocks ? 20 : 150));
      made.add(at, bytes, into);
      at += bytes;
      into += bytes;
    }
    const std::vector<Landing> all = made.landings();
    const JoinRules rules = {.max_read_bytes = kBlock * random.below(20),
                             .gap_bytes = kBlock * random.below(8),
                             .bounce_bytes = kBlock * (20 + random.below(40)),
                             .prefer_bounce = random.below(2) == 0};
    for (size_t next = 0; next < all.size();) {
      ASSERT_TRUE(readable(all[next], rules));
      const Join join = next_join(std::span(all).subspan(next), rules);
      ASSERT_GE(join.count, 1u);
      ASSERT_LE(next + join.count, all.size());
      ASSERT_EQ((join.offset | join.bytes) % kBlock, 0u);
      std::set<uint64_t> wanted;  // in units of 64 bytes
      for (const Landing& landing : std::span(all).subspan(next, join.count)) {
        ASSERT_GE(landing.begin(), join.offset);
        ASSERT_LE(landing.end(), join.offset + join.bytes);
        for (uint64_t byte = landing.begin(); byte < landing.end(); byte += 64) wanted.insert(byte);
        if (!join.bounced) {
          ASSERT_EQ(landing.into - all[next].into, static_cast<ptrdiff_t>(landing.begin() - join.offset));
        }
      }
      ASSERT_EQ(join.wasted_bytes, join.bytes - wanted.size() * 64);
      // A read may always cover the blocks of its first unit.
      const uint64_t first = (all[next].end() + kBlock - 1) / kBlock * kBlock - join.offset;
      ASSERT_LE(join.bytes, std::max(rules.max_read_bytes, first));
      if (join.bounced) {
        ASSERT_LE(join.bytes, rules.bounce_bytes);
      }
      next += join.count;
    }
  }
}

}  // namespace
}  // namespace tierd
