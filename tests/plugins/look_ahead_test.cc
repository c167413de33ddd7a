// The prefetches of predictor top-k: for which operators, from which layer, which channels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "tests/plugins/table.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Predictor = Plugged<tierd_predictor_1>;
constexpr uint32_t kChannels = 20;

// Eight layers of two operators in groups: qkv of layer l is site 2 l, down is site 2 l + 1.
std::vector<TestSite> layers_in_groups_of(uint16_t size) {
  std::vector<TestSite> sites;
  for (uint16_t layer = 0; layer < 8; ++layer) {
    for (const uint16_t op : {uint16_t{1}, uint16_t{4}}) {
      TestSite site{kChannels, 64, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL, kChannels};
      site.name = "layers." + std::to_string(layer) + (op == 1 ? ".qkv" : ".down");
      site.layer = layer;
      site.op_group = op;
      site.layer_group = layer / size;
      sites.push_back(site);
    }
  }
  return sites;
}

struct Wishes {
  std::vector<uint32_t> sites;
  std::vector<uint32_t> channels;  // of each site
};
Wishes wishes(Predictor& predictor, uint32_t site, const std::vector<float>& x, uint32_t rows = 1) {
  const std::vector<uint64_t> sequences(rows, 0);
  const tierd_rows_view view{sizeof view, rows, kChannels, x.data(), sequences.data()};
  predictor.wishes.clear();
  EXPECT_EQ(predictor.table.look_ahead(predictor.self, site, &view), TIERD_OK);
  Wishes all;
  for (const Predictor::Wish& wish : predictor.wishes) {
    EXPECT_EQ(wish.site, site + wish.distance);
    all.sites.push_back(wish.site);
    all.channels = wish.neurons.value();
    EXPECT_EQ(wish.scores.size(), all.channels.size());
    for (size_t i = 0; i < wish.scores.size(); ++i) {
      float greatest = 0;
      for (uint32_t r = 0; r < rows; ++r)
        greatest = std::max(greatest, std::abs(x[r * kChannels + all.channels[i]]));
      EXPECT_EQ(wish.scores[i], greatest);
    }
  }
  return all;
}

// Returns inputs that grow with their number, with alternating signs.
std::vector<float> rising() {
  std::vector<float> x(kChannels);
  for (uint32_t i = 0; i < kChannels; ++i) x[i] = (i % 2 == 0 ? 0.1F : -0.1F) * static_cast<float>(i);
  return x;
}

TEST(LookAhead, IsOfTheNextGroupFromTheFirstLayerOfThis) {
  Predictor predictor("predictor", "top-k", layers_in_groups_of(3), {{"sparsity", 0.8, "test"}});
  EXPECT_THAT(wishes(predictor, 0, rising()).sites, ElementsAre(6, 8, 10));
  EXPECT_THAT(wishes(predictor, 0, rising()).channels, ElementsAre(16, 17, 18, 19));
  EXPECT_THAT(wishes(predictor, 2, rising()).sites, IsEmpty());
  EXPECT_THAT(wishes(predictor, 4, rising()).sites, IsEmpty());
  EXPECT_THAT(wishes(predictor, 6, rising()).sites, ElementsAre(12, 14)) << "the last group has two layers";
  EXPECT_THAT(wishes(predictor, 12, rising()).sites, IsEmpty()) << "none follows";
  EXPECT_THAT(wishes(predictor, 1, rising()).sites, IsEmpty()) << "down is not fed by the residual stream";
}

TEST(LookAhead, IsOfWhomItIsAskedFor) {
  const auto with = [](const std::string& ahead, const std::string& from) {
    return Predictor("predictor", "top-k", layers_in_groups_of(2),
                     {{"ahead", ahead, "test"}, {"ahead_from", from, "test"}});
  };
  Predictor all = with("all", "first");
  EXPECT_THAT(wishes(all, 1, rising()).sites, ElementsAre(5, 7));
  Predictor none = with("none", "first");
  EXPECT_THAT(wishes(none, 0, rising()).sites, IsEmpty());
  Predictor last = with("measured", "last");
  EXPECT_THAT(wishes(last, 0, rising()).sites, IsEmpty());
  EXPECT_THAT(wishes(last, 2, rising()).sites, ElementsAre(4, 6));
}

// One operator of layer 0 predicts one layer ahead at sparsity 0.5; the other one predicts nothing.
TEST(LookAhead, FollowsWhatWasMeasured) {
  std::vector<float> well(3 * 9, 0.6F);
  well[4] = 0.9F;       // distance 1, sparsity 0.5
  well[9 + 4] = 0.71F;  // distance 2
  const HeatOfSites tables = {{"layers.0.qkv.ahead", well},
                              {"layers.0.down.ahead", std::vector<float>(3 * 9, 0.5F)}};
  const auto sites_for = [&](double sparsity, double least) {
    Predictor predictor("predictor", "top-k", layers_in_groups_of(1),
                        {{"sparsity", sparsity, "test"}, {"least_precision", least, "test"}}, tables);
    EXPECT_THAT(wishes(predictor, 1, rising()).sites, IsEmpty());
    return wishes(predictor, 0, rising()).sites;
  };
  EXPECT_THAT(sites_for(0.5, 0.7), ElementsAre(2));
  EXPECT_THAT(sites_for(0.5, 0.95), IsEmpty());
  EXPECT_THAT(sites_for(0.8, 0.7), IsEmpty());
  Predictor pairs("predictor", "top-k", layers_in_groups_of(2), {}, tables);
  EXPECT_THAT(wishes(pairs, 0, rising()).sites, ElementsAre(4)) << "two layers ahead, and not three";
}

TEST(LookAhead, FetchesBeyondOrOnlyTheSurest) {
  Predictor predictor("predictor", "top-k", layers_in_groups_of(1),
                      {{"sparsity", 0.9, "test"}, {"over_fetch", 1.0, "test"}});
  EXPECT_THAT(wishes(predictor, 0, rising()).channels, ElementsAre(16, 17, 18, 19));
  Predictor surest("predictor", "top-k", layers_in_groups_of(1),
                   {{"sparsity", 0.8, "test"}, {"over_fetch", -0.5, "test"}});
  EXPECT_THAT(wishes(surest, 0, rising()).channels, ElementsAre(18, 19));
  Predictor none("predictor", "top-k", layers_in_groups_of(1),
                 {{"sparsity", 0.8, "test"}, {"over_fetch", -1.0, "test"}});
  EXPECT_THAT(wishes(none, 0, rising()).sites, IsEmpty());
  std::vector<float> zeros(kChannels, 0.0F);
  zeros[3] = 1;
  EXPECT_THAT(wishes(predictor, 0, zeros).channels, ElementsAre(3)) << "never what is zero";
}

TEST(LookAhead, UnitesRowsButNotThoseOfAPrompt) {
  Predictor predictor("predictor", "top-k", layers_in_groups_of(1), {{"sparsity", 0.95, "test"}});
  std::vector<float> x(2 * kChannels, 0.0F);
  x[5] = 1;
  x[kChannels + 2] = -1;
  EXPECT_THAT(wishes(predictor, 0, x, 2).channels, ElementsAre(2, 5));
  EXPECT_THAT(wishes(predictor, 0, std::vector<float>(100 * kChannels, 1.0F), 100).sites, IsEmpty());
}

}  // namespace
}  // namespace tierd
