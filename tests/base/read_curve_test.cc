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

// Compares with counting: drawn pieces, read in runs over gaps of every length.
TEST(ReadCurve, JoinsReadsOverTheBestGap) {
  const ReadCurve curve = steady_disk(20e-6, 2e9);
  std::mt19937 random(1);
  for (const double density : {0.02, 0.2, 0.5, 0.9}) {
    constexpr int kPieces = 200'000;
    constexpr uint64_t kBytes = 8192;
    std::vector<int> wanted;
    std::bernoulli_distribution draw(density);
    for (int i = 0; i < kPieces; ++i) {
      if (draw(random)) wanted.push_back(i);
    }
    double least = 1e9;
    for (int most = 0; most < 40; ++most) {
      double total = 0;
      for (size_t begin = 0, end = 1; begin < wanted.size(); begin = end++) {
        while (end < wanted.size() && wanted[end] - wanted[end - 1] - 1 <= most) ++end;
        const uint64_t bytes = kBytes * static_cast<uint64_t>(wanted[end - 1] - wanted[begin] + 1);
        total += curve.seconds(static_cast<double>(bytes), std::min<uint64_t>(bytes, 1 << 20), true);
      }
      least = std::min(least, total);
    }
    const double found =
        curve.scattered_seconds(static_cast<double>(wanted.size() * kBytes), kBytes, true, density);
    EXPECT_NEAR(found / least, 1, 0.05) << density;
  }
  EXPECT_EQ(curve.scattered_seconds(0, 4096, true, 0), 0);
  EXPECT_NEAR(curve.scattered_seconds(1e9, 4096, true, 1), 1e9 / curve.rate(1 << 20, true), 1e-3);
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
