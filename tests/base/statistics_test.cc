#include "core/base/statistics.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

TEST(Statistics, OfAnEmptyListAreZero) {
  EXPECT_EQ(mean({}), 0);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

TEST(Statistics, TheMedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({3, 1, 10}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Statistics, AQuantileIsOneOfTheValues) {
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.99), 3);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 1), 4);
}

TEST(Statistics, TheMeanIsTheSumOverTheCount) {
  const double values[] = {1, 2, 6};
  EXPECT_EQ(mean(values), 3);
}

}  // namespace
}  // namespace tierd
