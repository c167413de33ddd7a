#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plugins/table.h"

namespace tierd {
namespace {

const std::vector<TestSite> kSites = {{6, 100, true}, {10, 100}, {4, 300}, {6, 100}};

TEST(PredictorDense, EverythingIsActive) {
  Plugged<tierd_predictor_1> dense("predictor", "dense", kSites);
  EXPECT_EQ(dense.table.caps(dense.self), 0u);
  tierd_set_out out{};
  const tierd_rows_view rows{};
  EXPECT_EQ(dense.table.predict(dense.self, 1, &rows, &out), TIERD_OK);
  EXPECT_EQ(out.all, 1);
}

TEST(PredictorDense, LooksAheadAroundTheWalkAndNeverAtItself) {
  for (const uint32_t n : {1u, 2u, 4u, 20u}) {
    Plugged<tierd_predictor_1> dense("predictor", "dense", std::vector<TestSite>(n, TestSite{4, 100}));
    for (uint32_t site = 0; site < n; ++site) {
      const tierd_rows_view rows{};
      dense.wishes.clear();
      ASSERT_EQ(dense.table.look_ahead(dense.self, site, &rows), TIERD_OK);
      ASSERT_EQ(dense.wishes.size(), std::min(8u, n - 1));
      for (uint32_t i = 0; i < dense.wishes.size(); ++i) {
        EXPECT_EQ(dense.wishes[i].distance, i + 1);
        EXPECT_EQ(dense.wishes[i].site, (site + i + 1) % n);
        EXPECT_EQ(dense.wishes[i].memory, TIERD_NO_MEMORY);
        EXPECT_EQ(dense.wishes[i].neurons, std::nullopt);
      }
    }
  }
}

// A step passes an expert only if its router chooses it; its later operators follow the first.
TEST(PredictorDense, LooksAheadToNoExpertBeforeItIsChosen) {
  // Site 0, then up and down of two experts, then two more sites.
  std::vector<TestSite> sites(7, TestSite{4, 100});
  for (uint32_t s = 1; s <= 4; ++s) sites[s].expert = (s - 1) / 2;
  Plugged<tierd_predictor_1> dense("predictor", "dense", sites, {{"sites_ahead", int64_t{2}, "test"}});
  const auto ahead_of = [&](uint32_t site) {
    const tierd_rows_view rows{};
    dense.wishes.clear();
    EXPECT_EQ(dense.table.look_ahead(dense.self, site, &rows), TIERD_OK);
    std::vector<uint32_t> wished;
    for (const auto& wish : dense.wishes) {
      EXPECT_EQ(wish.site, (site + wish.distance) % 7);
      wished.push_back(wish.site);
    }
    return wished;
  };
  using Sites = std::vector<uint32_t>;
  EXPECT_EQ(ahead_of(0), (Sites{5, 6}));
  EXPECT_EQ(ahead_of(1), (Sites{2, 5}));
  EXPECT_EQ(ahead_of(2), (Sites{5, 6}));
  EXPECT_EQ(ahead_of(3), (Sites{4, 5}));
  EXPECT_EQ(ahead_of(5), (Sites{6, 0}));
  EXPECT_EQ(ahead_of(6), (Sites{0, 5}));
}

TEST(QuantizerPlain, TakesWhatTheStoreHas) {
  Plugged<tierd_levels_1> plain("quantizer", "plain", kSites);
  std::vector<uint8_t> level(5, 7);
  const std::vector<uint32_t> neurons = {0, 2, 3};
  const tierd_set_view set = set_of(1, neurons);
  EXPECT_EQ(plain.table.choose(plain.self, &set, level.data()), TIERD_OK);
  EXPECT_EQ(level, (std::vector<uint8_t>{0, 0, 0, 7, 7}));
}

TEST(BalancerRoundRobin, UnitsTakeTurns) {
  const auto dealt = [](int64_t run, const std::vector<uint32_t>& neurons, uint32_t units) {
    Plugged<tierd_balancer_1> dealer("balancer", "round-robin", kSites, {{"run", run, "test"}}, {}, {},
                                     units);
    std::vector<uint8_t> unit(neurons.size() + 1, 99);
    const tierd_set_view set = set_of(1, neurons);
    EXPECT_EQ(dealer.table.assign(dealer.self, &set, unit.data()), TIERD_OK);
    EXPECT_EQ(unit.back(), 99);
    unit.pop_back();
    return unit;
  };
  EXPECT_EQ(dealt(1, {0, 1, 2, 3, 7}, 2), (std::vector<uint8_t>{0, 1, 0, 1, 1}));
  EXPECT_EQ(dealt(2, {0, 1, 2, 3, 4, 9}, 3), (std::vector<uint8_t>{0, 0, 1, 1, 2, 1}));
  EXPECT_EQ(dealt(1, {0, 5}, 1), (std::vector<uint8_t>{0, 0}));
  Plugged<tierd_balancer_1> dealer("balancer", "round-robin", kSites, {}, {}, {}, 2);
  tierd_set_view all = set_of(1, {});
  all.n = 3;
  all.idx = nullptr;
  std::vector<uint8_t> unit(3);
  EXPECT_EQ(dealer.table.assign(dealer.self, &all, unit.data()), TIERD_OK);
  EXPECT_EQ(unit, (std::vector<uint8_t>{0, 1, 0}));
  // Homes are distributed in the same way: 4 neurons of the third edition.
  std::vector<uint8_t> home(5, 99);
  EXPECT_EQ(dealer.table.place(dealer.self, 2, home.data()), TIERD_OK);
  EXPECT_EQ(home, (std::vector<uint8_t>{0, 1, 0, 1, 99}));
}

TEST(BalancerSingle, OneUnitDoesAll) {
  Plugged<tierd_balancer_1> single("balancer", "single", kSites, {}, {}, {}, 4);
  std::vector<uint8_t> unit(5, 7);
  const std::vector<uint32_t> neurons = {0, 2, 3};
  const tierd_set_view set = set_of(1, neurons);
  EXPECT_EQ(single.table.assign(single.self, &set, unit.data()), TIERD_OK);
  EXPECT_EQ(unit, (std::vector<uint8_t>{0, 0, 0, 7, 7}));
  EXPECT_EQ(single.table.place(single.self, 2, unit.data()), TIERD_OK);
  EXPECT_EQ(unit, (std::vector<uint8_t>{0, 0, 0, 0, 7}));
}

TEST(PredictorDense, LooksAsFarAheadAsItIsTold) {
  Plugged<tierd_predictor_1> dense("predictor", "dense", std::vector<TestSite>(20, TestSite{4, 100}),
                                   {{"sites_ahead", int64_t{3}, "test"}});
  const tierd_rows_view rows{};
  ASSERT_EQ(dense.table.look_ahead(dense.self, 0, &rows), TIERD_OK);
  EXPECT_EQ(dense.wishes.size(), 3u);
}

TEST(PredictorRandom, DrawsTheShareThatItIsToldAndTheSameForASeed) {
  const std::vector<TestSite> sites = {{1000, 100}, {1000, 100}};
  const auto draw = [&](double p) {
    Plugged<tierd_predictor_1> random("predictor", "random", sites, {{"p", p, "test"}});
    EXPECT_EQ(random.table.caps(random.self), uint32_t{TIERD_PREDICTOR_LOSSY});
    std::vector<std::vector<uint32_t>> sets;
    const tierd_rows_view rows{};
    for (uint32_t i = 0; i < 20; ++i) {
      std::vector<uint32_t> idx(1000);
      tierd_set_out out{sizeof out, 1000, 0, 0, idx.data(), nullptr, nullptr, 0};
      EXPECT_EQ(random.table.predict(random.self, i % 2, &rows, &out), TIERD_OK);
      idx.resize(out.n);
      EXPECT_TRUE(std::is_sorted(idx.begin(), idx.end()));
      sets.push_back(idx);
    }
    return sets;
  };
  EXPECT_EQ(draw(0.3), draw(0.3));
  size_t drawn = 0;
  for (const auto& set : draw(0.3)) drawn += set.size();
  EXPECT_NEAR(static_cast<double>(drawn), 6000, 300);  // 4.6 sigma
  EXPECT_EQ(draw(1.0)[0].size(), 1000u);
  EXPECT_EQ(draw(0.0)[0].size(), 0u);
  EXPECT_NE(draw(0.3)[0], draw(0.3)[2]);  // drawn anew in each step
}

TEST(Plugins, DescribeThemselves) {
  const auto found = PluginPath({TIERD_PLUGIN_DIR}).list();
  EXPECT_GE(found.size(), 8u);
  for (const PluginPath::Found& file : found) {
    if (file.kind == "agent") continue;
    const StrategyChoice choice = choose(file.kind, file.name);
    EXPECT_NE(std::string(choice.plugin->summary), "") << file.path;
    const bool lossy = file.kind == "predictor" && file.name != "dense" && file.name != "router" &&
                       file.name != "firing-rate";
    EXPECT_EQ(choice.plugin->lossy, lossy ? 1u : 0u) << file.path;
  }
}

}  // namespace
}  // namespace tierd
