#include "core/message/pool.h"

#include <gtest/gtest.h>

#include <array>

namespace tierd {
namespace {

struct alignas(64) Memory {
  std::array<std::byte, 256> bytes{};
};

TEST(PoolTable, ResolvesSpansInUnitsOf64Bytes) {
  Memory a, b, c;
  PoolTable pools;
  EXPECT_EQ(pools.add(3, a.bytes), 0);
  EXPECT_EQ(pools.add(kKernel, b.bytes), 0);
  EXPECT_EQ(pools.add(3, c.bytes), 1);
  const auto span = pools.resolve({3, 1, 2, 128});
  EXPECT_EQ(span.data(), c.bytes.data() + 128);
  EXPECT_EQ(span.size(), 128u);
  EXPECT_EQ(pools.resolve(kKernel, 0, 3, 64), b.bytes.data() + 192);
  EXPECT_TRUE(pools.resolve({3, 0, 4, 0}).empty());  // "none", at the very end
}

TEST(PoolTableDeathTest, SpansOutsideAreBrokenInvariants) {
  Memory a;
  PoolTable pools;
  pools.add(1, a.bytes);
  EXPECT_DEATH((void)pools.resolve({1, 0, 4, 1}), "begin \\+ span.bytes");
  EXPECT_DEATH((void)pools.resolve({1, 0, 0xffffffff, 0xffffffff}), "begin \\+ span.bytes");
  EXPECT_DEATH((void)pools.resolve(1, 0, 0, 257), "begin \\+ bytes");
  EXPECT_DEATH((void)pools.resolve({1, 1, 0, 0}), "pool");
  EXPECT_DEATH((void)pools.resolve({7, 0, 0, 0}), "agent");
  EXPECT_DEATH(pools.add(1, std::span(a.bytes).subspan(1)), "kSpanUnit");
}

TEST(PoolTableDeathTest, AListMustHoldItsUnits) {
  Memory a;
  auto* header = reinterpret_cast<UnitList*>(a.bytes.data());
  header->count = 2;
  auto* units = reinterpret_cast<Unit*>(header + 1);
  units[1] = {7, 9};
  const std::span<const std::byte> list(a.bytes);
  EXPECT_EQ(PoolTable::units(list.first(24)).size(), 2u);
  EXPECT_EQ(PoolTable::units(list.first(24))[1].offset, 9u);
  EXPECT_DEATH((void)PoolTable::units(list.first(23)), "count");
  EXPECT_DEATH((void)PoolTable::header(list.first(7)), "UnitList");
}

}  // namespace
}  // namespace tierd
