#include "tools/lab/activity/rate_table.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/beta.hpp>

#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/normal.h"
#include "tools/lab/activity/portable_math.h"

namespace tierd {
namespace {

// Checks the error stated in rate_table.h for the rates of all profiles and the bounds of profiles.
TEST(RateTable, IsAsExactAsItSays) {
  struct Stated {
    BetaRates rates;
    double error;
  };
  for (const auto& [rates, error] :
       {Stated{{0.194, 1.747}, 2e-5}, Stated{{0.12, 0.527}, 2e-5}, Stated{{0.133, 0.534}, 2e-5},
        Stated{{4.25, 4.25}, 2e-5}, Stated{{0.05, 0.05}, 3e-4}, Stated{{100, 100}, 3e-4}}) {
    const RateTable table(rates);
    const boost::math::beta_distribution<double, BoostPolicy> beta(rates.a, rates.b);
    constexpr uint32_t kPoints = 100'000;
    double sum = 0;
    for (uint32_t i = 0; i < kPoints; ++i) {
      const double share = (i + 0.5) / kPoints;
      const double p = table.rate(normal_quantile(share));
      sum += p;
      if (i % 100 != 0 && i >= 100 && i + 100 <= kPoints) continue;
      ASSERT_NEAR(p, boost::math::quantile(beta, share), error) << rates.a << " " << share;
    }
    EXPECT_NEAR(sum / kPoints, mean_rate(rates), 2e-5) << rates.a;
    EXPECT_EQ(table.rate(100), table.rate(kMostNormal));
    EXPECT_EQ(table.rate(-100), table.rate(-kMostNormal));
  }
}

TEST(RateTable, ThresholdsAreRatesOf32Bits) {
  const RateTable table({0.05, 0.05});  // most rates are 0 or 1
  EXPECT_EQ(table.threshold(-5), 0u);
  EXPECT_EQ(table.threshold(5), UINT32_MAX);
  EXPECT_EQ(table.threshold(0.1), static_cast<uint32_t>(table.rate(0.1) * 0x1p32));
}

}  // namespace
}  // namespace tierd
