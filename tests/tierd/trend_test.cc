#include "tools/tierd/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

TEST(Trend, OfALine) {
  const Trend rising = trend_of(std::vector<uint64_t>{10, 13, 16, 19, 22});
  EXPECT_DOUBLE_EQ(rising.mean, 16);
  EXPECT_DOUBLE_EQ(rising.slope, 3);
  EXPECT_NEAR(rising.error, 0, 1e-12);
  EXPECT_DOUBLE_EQ(trend_of(std::vector<uint64_t>{5, 3}).slope, -2);
}

TEST(Trend, OfLittle) {
  EXPECT_EQ(trend_of({}).mean, 0);
  const Trend one = trend_of(std::vector<uint64_t>{7});
  EXPECT_EQ(one.mean, 7);
  EXPECT_EQ(one.slope, 0);
  EXPECT_EQ(one.error, 0);
}

// Noise without a trend: the slope is nearly always within three standard errors.
TEST(Trend, OfNoiseIsWithinItsError) {
  int outside = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<uint64_t> values;
    for (int i = 0; i < 100; ++i) values.push_back(1000 + random.below(100));
    const Trend trend = trend_of(values);
    EXPECT_GT(trend.error, 0);
    outside += std::abs(trend.slope) > 3 * trend.error ? 1 : 0;
  }
  EXPECT_LE(outside, 4);
}

}  // namespace
}  // namespace tierd
