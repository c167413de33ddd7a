// Predictor top-k with a different sparsity for each operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "tests/plugins/table.h"

namespace tierd {
namespace {

using Predictor = Plugged<tierd_predictor_1>;
constexpr uint32_t kOperatorChannels = 200;

// Three operators of equal width; the last one's columns have three times the bytes.
std::vector<TestSite> three_operators() {
  std::vector<TestSite> sites;
  for (const uint32_t bytes : {64u, 64u, 192u})
    sites.push_back({kOperatorChannels, bytes, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL, kOperatorChannels});
  return sites;
}

std::vector<float> loss(double (*of)(double)) {
  std::vector<float> lost;
  for (int percent = 0; percent <= 100; ++percent) lost.push_back(static_cast<float>(of(percent / 100.0)));
  return lost;
}

// Returns the share of inputs that each operator leaves out.
std::vector<double> left_out(double sparsity, const HeatOfSites& tables) {
  Predictor predictor("predictor", "top-k", three_operators(),
                      {{"sparsity", sparsity, "test"}, {"allocation", std::string("measured"), "test"}},
                      tables);
  Random random(1);
  std::vector<float> x(kOperatorChannels);
  for (float& value : x) value = random.symmetric();
  std::vector<double> shares;
  for (uint32_t site = 0; site < 3; ++site) {
    const uint64_t sequence = 0;
    const tierd_rows_view rows{sizeof rows, 1, kOperatorChannels, x.data(), &sequence};
    std::vector<uint32_t> active(kOperatorChannels);
    tierd_set_out out{sizeof out, kOperatorChannels, 0, 0, active.data(), nullptr, nullptr, 0};
    EXPECT_EQ(predictor.table.predict(predictor.self, site, &rows, &out), TIERD_OK);
    shares.push_back(1 - out.n / double{kOperatorChannels});
  }
  return shares;
}

// An expert that the profiled text never used has a table of zeros. It means that the loss is unknown, not
// that it is zero.
TEST(Allocation, OfWhomNothingIsKnownTheMeanIsLeftOut) {
  const HeatOfSites tables = {{"site 0.lost", loss([](double share) { return share * share; })},
                              {"site 1.lost", std::vector<float>(101, 0.0F)},
                              {"site 1.thresholds", {0, 0, 0}},
                              {"site 2.lost", loss([](double share) { return share * share; })}};
  const std::vector<double> shares = left_out(0.4, tables);
  EXPECT_NEAR(shares[1], 0.4, 1e-6);
  EXPECT_NEAR((shares[0] + 3 * shares[2]) / 4, 0.4, 0.02) << "of what is known";
}

TEST(Allocation, LeavesOutMostWhereLeastIsLost) {
  const HeatOfSites tables = {{"site 0.lost", loss([](double share) { return share < 0.9 ? 0 : share; })},
                              {"site 1.lost", loss([](double share) { return share * share; })},
                              {"site 2.lost", loss([](double share) { return share * share; })}};
  const std::vector<double> shares = left_out(0.5, tables);
  EXPECT_NEAR(shares[0], 0.89, 0.02) << "for nothing";
  // Per byte, the wide operator loses a third as much at the same share.
  EXPECT_NEAR(shares[2], 3 * shares[1], 0.06);
  EXPECT_NEAR((shares[0] + shares[1] + 3 * shares[2]) / 5, 0.5, 0.02) << "of all bytes";
}

TEST(Allocation, ReachesBothEnds) {
  const HeatOfSites tables = {{"site 0.lost", loss([](double share) { return share; })},
                              {"site 1.lost", loss([](double share) { return share * share; })},
                              {"site 2.lost", loss([](double) { return 0.0; })}};
  EXPECT_THAT(left_out(0, tables), testing::Each(0.0));
  EXPECT_THAT(left_out(1, tables), testing::Each(1.0));
}

}  // namespace
}  // namespace tierd
