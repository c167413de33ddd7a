#include "core/base/read_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/base/steady_disk.h"

namespace tierd {
namespace {

TEST(ReadCurve, GivesWhatWasMeasuredAndLinesBetween) {
  const ReadCurve curve({{4096, 0.4e9}, {16384, 1.0e9}, {65536, 1.5e9}});
  EXPECT_DOUBLE_EQ(curve.rate(4096, true), 0.4e9);
  EXPECT_DOUBLE_EQ(curve.rate(16384, true), 1.0e9);
  const double small = 4096 / 0.4e9, large = 16384 / 1.0e9;
  EXPECT_DOUBLE_EQ(curve.seconds(8192, 8192, true), small + (large - small) / 3);
  // Sizes below and above the measured ones.
  EXPECT_DOUBLE_EQ(curve.seconds(2048, 2048, true), small);
  EXPECT_DOUBLE_EQ(curve.rate(1 << 20, true), 1.5e9);
  // Ten reads take ten times as long as one.
  EXPECT_DOUBLE_EQ(curve.seconds(163840, 16384, true), 10 * large);
}

// A disk reads whole blocks. A read with an arbitrary offset touches more of them.
TEST(ReadCurve, CountsTheBlocksThatAreTouched) {
  const ReadCurve curve({{4096, 1e9}, {1 << 20, 1e9}});
  EXPECT_DOUBLE_EQ(curve.seconds(5000, 5000, true), 8192 / 1e9);
  EXPECT_DOUBLE_EQ(curve.seconds(5000, 5000, false), (5000 + 4096 - 64) / 1e9);
  EXPECT_DOUBLE_EQ(curve.seconds(8192, 8192, true), 8192 / 1e9);
}

TEST(ReadCurve, TellsWhatARequestCosts) {
  const ReadCurve::Request request = steady_disk(20e-6, 2e9).request();
  EXPECT_NEAR(request.seconds, 20e-6, 1e-12);
  EXPECT_NEAR(request.bytes_per_second, 2e9, 1);
  EXPECT_NEAR(static_cast<double>(request.bytes()), 40'000, 1);
  EXPECT_NEAR(static_cast<double>(request.gap_bytes()), 20'000, 1);
}

TEST(ReadCurve, ARequestCostsNothingWhereTheMeasurementSaysNothing) {
  const auto curve = [](double small, double large) {
    return ReadCurve({{4096, 4096 / small}, {131072, 131072 / large}});
  };
  EXPECT_EQ(curve(2e-6, 2e-6).request().bytes(), 0u);
  EXPECT_EQ(curve(3e-6, 2e-6).request().bytes(), 0u);
  EXPECT_EQ(curve(1e-6, 1e-3).request().bytes(), 0u);  // more than in proportion
}

}  // namespace
}  // namespace tierd
