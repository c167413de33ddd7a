#include "core/run/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

TEST(Budget, NeverHoldsMoreThanItsCapacity) {
  Budget budget(1000);
  EXPECT_TRUE(budget.reserve("KV cache", 600).ok());
  const Status refused = budget.reserve("staging", 401);
  EXPECT_EQ(refused.code(), Code::no_space);
  EXPECT_EQ(refused.error().line(), "budget: staging needs 401 B, but of 1.00 kB only 400 B are left");
  EXPECT_EQ(budget.used(), 600u);
  EXPECT_TRUE(budget.reserve("staging", 400).ok());
  EXPECT_EQ(budget.left(), 0u);
  EXPECT_FALSE(budget.reserve("staging", UINT64_MAX).ok());
  budget.release("KV cache", 100);
  EXPECT_TRUE(budget.reserve("KV cache", 50).ok());
  EXPECT_EQ(budget.used(), 950u);
  EXPECT_EQ(budget.peak(), 1000u);
  ASSERT_EQ(budget.lines().size(), 2u);
  EXPECT_EQ(budget.lines()[0].bytes, 550u);
  EXPECT_EQ(budget.lines()[1].name, "staging");
  EXPECT_DEATH(budget.release("staging", 401), "known.bytes");
}

TEST(Budget, ItsCapacityMoves) {
  Budget budget(1000);
  ASSERT_TRUE(budget.reserve("resident weights", 800).ok());
  budget.set_capacity(2000);
  EXPECT_EQ(budget.left(), 1200u);
  budget.release("resident weights", 500);
  budget.set_capacity(300);
  EXPECT_EQ(budget.left(), 0u);
  EXPECT_EQ(budget.peak(), 800u);
  EXPECT_DEATH(budget.set_capacity(299), "used_ <= capacity");
}

}  // namespace
}  // namespace tierd
