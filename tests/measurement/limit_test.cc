#include "tools/measurement/limit.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

TEST(Limit, TheLargerTermBounds) {
  // 1 GB of 4 GB is read from a disk of 2 GB/s: 0.5 s, against 0.1 s in memory.
  const Limit flash = limit_of({1e9, 4e9}, {2e9, 40e9});
  EXPECT_DOUBLE_EQ(flash.flash_seconds, 0.5);
  EXPECT_DOUBLE_EQ(flash.memory_seconds, 0.1);
  EXPECT_DOUBLE_EQ(flash.rate(), 2);
  // A tenth of it: memory bounds.
  EXPECT_DOUBLE_EQ(limit_of({1e8, 4e9}, {2e9, 40e9}).rate(), 10);
}

TEST(Limit, ResidentIsBoundByMemoryAlone) {
  const Limit limit = limit_of({0, 4e9}, {0, 40e9});
  EXPECT_EQ(limit.flash_seconds, 0);
  EXPECT_DOUBLE_EQ(limit.rate(), 10);
  EXPECT_FALSE(limit.close());
}

TEST(Limit, CloseTermsAreThoseWithin20Percent) {
  EXPECT_TRUE(limit_of({1.0, 0.85}, {1, 1}).close());
  EXPECT_TRUE(limit_of({0.85, 1.0}, {1, 1}).close());
  EXPECT_FALSE(limit_of({1.0, 0.75}, {1, 1}).close());
}

TEST(Limit, NothingMeasuredBoundsNothing) {
  EXPECT_EQ(limit_of({1e9, 4e9}, {}).rate(), 0);
}

}  // namespace
}  // namespace tierd
