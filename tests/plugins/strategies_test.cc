#include <gtest/gtest.h>

#include "tests/plugins/table.h"

namespace tierd {
namespace {

const std::vector<TestSite> kSites = {{6, 100, true}, {10, 100}, {4, 300}, {6, 100}};

TEST(PredictorDense, EverythingIsActive) {
  Plugged<tierd_predictor_1> dense(tierd_predictor_dense, TIERD_PREDICTOR_1, kSites);
  EXPECT_EQ(dense.table->caps(dense.self), 0u);
  tierd_set_out out{};
  const tierd_rows_view rows{};
  EXPECT_EQ(dense.table->predict(dense.self, 1, &rows, &out), TIERD_OK);
  EXPECT_EQ(out.all, 1);
}

TEST(PredictorDense, LooksAheadAroundTheWalkAndNeverAtItself) {
  for (const uint32_t n : {1u, 2u, 4u, 20u}) {
    Plugged<tierd_predictor_1> dense(tierd_predictor_dense, TIERD_PREDICTOR_1,
                                     std::vector<TestSite>(n, TestSite{4, 100}));
    for (uint32_t site = 0; site < n; ++site) {
      std::vector<tierd_ahead> items(64);
      tierd_ahead_out out{64, 0, items.data()};
      const tierd_rows_view rows{};
      ASSERT_EQ(dense.table->look_ahead(dense.self, site, &rows, &out), TIERD_OK);
      EXPECT_EQ(out.n, std::min(8u, n - 1));
      for (uint32_t i = 0; i < out.n; ++i) {
        EXPECT_EQ(items[i].distance, i + 1);
        EXPECT_EQ(items[i].site, (site + i + 1) % n);
        EXPECT_EQ(items[i].idx, nullptr);
      }
      tierd_ahead_out small{2, 0, items.data()};
      ASSERT_EQ(dense.table->look_ahead(dense.self, site, &rows, &small), TIERD_OK);
      EXPECT_LE(small.n, 2u);
    }
  }
}

TEST(QuantizerPlain, TakesWhatTheStoreHas) {
  Plugged<tierd_quantizer_1> plain(tierd_quantizer_plain, TIERD_QUANTIZER_1, kSites);
  std::vector<uint8_t> level(5, 7);
  const std::vector<uint32_t> neurons = {0, 2, 3};
  const tierd_set_view set = set_of(1, neurons);
  const tierd_site_view site{};
  EXPECT_EQ(plain.table->choose(plain.self, &site, &set, level.data()), TIERD_OK);
  EXPECT_EQ(level, (std::vector<uint8_t>{0, 0, 0, 7, 7}));
}

TEST(BalancerSingle, OneUnitDoesAll) {
  Plugged<tierd_balancer_1> single(tierd_balancer_single, TIERD_BALANCER_1, kSites);
  std::vector<uint8_t> unit(5, 7);
  const std::vector<uint32_t> neurons = {0, 2, 3};
  const tierd_set_view set = set_of(1, neurons);
  EXPECT_EQ(single.table->assign(single.self, &set, 4, unit.data()), TIERD_OK);
  EXPECT_EQ(unit, (std::vector<uint8_t>{0, 0, 0, 7, 7}));
}

TEST(Plugins, DescribeThemselves) {
  for (const tierd_plugin* plugin : all_plugins()) {
    EXPECT_EQ(plugin->size, sizeof(tierd_plugin));
    EXPECT_NE(std::string(plugin->name), "");
    EXPECT_NE(std::string(plugin->summary), "");
    EXPECT_EQ(plugin->lossy, 0);
  }
}

}  // namespace
}  // namespace tierd
