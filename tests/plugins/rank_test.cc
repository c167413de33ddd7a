// Compares the selection of predictor top-k with a sort.
#include "plugins/predictor/top-k/rank.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"

namespace tierd {
namespace {

void expect_like_a_sort(const std::vector<float>& values, Rank& rank) {
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  for (uint32_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(rank.of(values.data(), static_cast<uint32_t>(values.size()), i), sorted[i]) << i;
}

TEST(Rank, IsThatOfASort) {
  Random random(1);
  Rank rank;
  for (const uint32_t n : {1u, 2u, 64u, 501u}) {
    for (const float spread : {0.0f, 0.1f, 1.0f, 20.0f}) {
      std::vector<float> values(n);
      for (float& value : values) value = std::exp(spread * random.symmetric());
      expect_like_a_sort(values, rank);
    }
  }
}

TEST(Rank, OfEqualsZerosAndTheLargest) {
  Rank rank;
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  expect_like_a_sort({3, 3, 3, 0, 0, 3, 1, 0}, rank);
  expect_like_a_sort({most, 0, least, std::numeric_limits<float>::infinity(), least, 2 * least, 1}, rank);
}

TEST(Rank, NaNLiesAboveAll) {
  Rank rank;
  const float values[] = {std::nanf(""), 1, std::numeric_limits<float>::infinity(), 2};
  EXPECT_EQ(rank.of(values, 4, 0), 1);
  EXPECT_EQ(rank.of(values, 4, 1), 2);
  EXPECT_TRUE(std::isinf(rank.of(values, 4, 2)));
  EXPECT_TRUE(std::isnan(rank.of(values, 4, 3)));
}

}  // namespace
}  // namespace tierd
