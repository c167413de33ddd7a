#include "tools/lab/profile/threshold_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

TEST(Magnitudes, QuantilesAreThoseOfTheSortedValues) {
  Random random(1);
  Magnitudes magnitudes;
  std::vector<float> sorted;
  for (int i = 0; i < 20'000; ++i) {
    const float value = random.symmetric() * random.symmetric();
    magnitudes.add(value);
    sorted.push_back(std::abs(value));
  }
  std::sort(sorted.begin(), sorted.end());
  for (const double share : {0.01, 0.1, 0.3, 0.5, 0.8, 0.99}) {
    const float expected = sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
    EXPECT_NEAR(magnitudes.quantile(share), expected, expected / 64) << share;
  }
  EXPECT_EQ(magnitudes.quantile(1), sorted.back());
}

TEST(Magnitudes, ZerosAreZeros) {
  Magnitudes magnitudes;
  EXPECT_EQ(magnitudes.quantile(0.5), 0);
  for (int i = 0; i < 60; ++i) magnitudes.add(i % 2 == 0 ? 0.0F : -0.0F);
  for (int i = 0; i < 40; ++i) magnitudes.add(-3);
  EXPECT_EQ(magnitudes.quantile(0), 0);
  EXPECT_EQ(magnitudes.quantile(0.6), 0);
  EXPECT_NEAR(magnitudes.quantile(0.8), 3, 3.0 / 128);
  EXPECT_LE(magnitudes.quantile(1), 3);
}

}  // namespace
}  // namespace tierd
