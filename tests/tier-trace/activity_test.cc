// How active sets follow each other, against unions of sets.
#include "tools/tier-trace/activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/random.h"

namespace tierd {
namespace {

using Set = std::set<uint32_t>;

SiteActivity draw(uint64_t seed, uint32_t neurons = 60, uint32_t tokens = 40) {
  Random random(seed);
  SiteActivity site{"layers.0.ffn", neurons, {}};
  for (uint32_t t = 0; t < tokens; ++t) {
    auto& set = site.tokens.emplace_back();
    for (uint32_t i = 0; i < neurons; ++i) {
      const bool again = t > 0 && std::binary_search(site.tokens[t - 1].begin(), site.tokens[t - 1].end(), i);
      if (random.uniform() < (again ? 0.5 : i < 6 ? 0.5 : 0.08)) set.push_back(i);
    }
  }
  return site;
}

TEST(Activity, WindowsAreUnionsOfTheTokensBefore) {
  constexpr uint32_t kMost = 5, kSkip = 7;
  const SiteActivity site = draw(1);
  const WindowShares shares = window_shares(site, kMost, kSkip);
  const auto whole = static_cast<double>((site.tokens.size() - kSkip) * site.neurons);
  uint64_t active = 0;
  for (uint32_t k = 1; k <= kMost; ++k) {
    uint64_t fresh = 0, held = 0;
    active = 0;
    for (uint32_t t = kSkip; t < site.tokens.size(); ++t) {
      Set window;
      for (uint32_t back = 1; back <= k && back <= t; ++back)
        window.insert(site.tokens[t - back].begin(), site.tokens[t - back].end());
      for (const uint32_t neuron : site.tokens[t]) fresh += window.count(neuron) == 0 ? 1 : 0;
      window.insert(site.tokens[t].begin(), site.tokens[t].end());
      held += window.size();
      active += site.tokens[t].size();
    }
    EXPECT_DOUBLE_EQ(shares.fresh[k - 1], static_cast<double>(fresh) / whole) << k;
    EXPECT_DOUBLE_EQ(shares.held[k - 1], static_cast<double>(held) / whole) << k;
  }
  EXPECT_DOUBLE_EQ(shares.active, static_cast<double>(active) / whole);
}

// What holds of any text: a longer window reads less and holds more; what is held is what was held and what
// came.
TEST(Activity, IdentitiesOfWindows) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const SiteActivity site = draw(seed);
    const WindowShares shares = window_shares(site, 8, 10);
    for (size_t k = 1; k < 8; ++k) {
      EXPECT_LE(shares.fresh[k], shares.fresh[k - 1]);
      EXPECT_GE(shares.held[k], shares.held[k - 1]);
    }
    EXPECT_LE(shares.fresh[0], shares.active);
    EXPECT_GE(shares.held[0], shares.active);
    EXPECT_NEAR(overlap_with_previous(site, 10), 1 - shares.fresh[0] / shares.active, 1e-12);
    EXPECT_GT(overlap_with_previous(site, 10), overlap_with(site, draw(seed + 100), 10))
        << "a token has more in common with the one before than with another text's";
  }
}

TEST(Activity, TheHottestFifth) {
  SiteActivity site{"", 10, {{0, 1}, {0, 1, 2}, {0, 3}, {1, 4}}};
  EXPECT_DOUBLE_EQ(hot_share(site, 0), 6.0 / 9);
  EXPECT_DOUBLE_EQ(hot_share(site, 1), 4.0 / 7);
}

TEST(Activity, ClosestFriends) {
  // Pairs that always fire together are worth a bundle.
  SiteActivity pairs{"", 6, {{0, 1}, {2, 3}, {4, 5}, {0, 1}, {2, 3}}};
  EXPECT_DOUBLE_EQ(friend_bundling(pairs, 1, 0).cost, 1.0);
  EXPECT_EQ(friend_bundling(pairs, 1, 0).friends, 6u);
  // One that fires with all is everybody's friend, and comes again and again although it never left.
  SiteActivity star{"", 6, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}}};
  EXPECT_DOUBLE_EQ(friend_bundling(star, 1, 1).cost, 2.0);
  EXPECT_EQ(friend_bundling(star, 1, 1).with_one, 6u);
  EXPECT_EQ(friend_bundling(star, 1, 1).friends, 2u);  // itself has another
}

TEST(Activity, EveryoneHasAFriendInTheTable) {
  const SiteActivity site{"", 7, {{0, 3}, {1, 3}, {1, 4}, {1, 4, 6}, {5}}};
  // 2 never fires, 5 only alone: the one that fires most is theirs.
  EXPECT_EQ(friend_table(site), (std::vector<uint32_t>{3, 4, 1, 0, 1, 1, 1}));
  EXPECT_EQ(friend_table({"", 3, {}}), (std::vector<uint32_t>{1, 0, 0}));
  EXPECT_EQ(friend_table({"", 2, {{1}, {1}}}), (std::vector<uint32_t>{1, 0}));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SiteActivity drawn = draw(seed, 2 + static_cast<uint32_t>(seed), 12);
    const std::vector<uint32_t> friends = friend_table(drawn);
    ASSERT_EQ(friends.size(), drawn.neurons);
    for (uint32_t i = 0; i < drawn.neurons; ++i) {
      EXPECT_NE(friends[i], i);
      EXPECT_LT(friends[i], drawn.neurons);
    }
  }
}

TEST(Activity, TheReportHasMeans) {
  const std::vector<SiteActivity> sites = {draw(1), draw(2)};
  const nlohmann::json activity = activity_json(sites, {draw(3), draw(4)}, {});
  EXPECT_DOUBLE_EQ(
      activity["mean"]["active"].get<double>(),
      (activity["sites"][0]["active"].get<double>() + activity["sites"][1]["active"].get<double>()) / 2);
  const std::string text = activity_text(activity);
  EXPECT_NE(text.find("window of k tokens"), std::string::npos);
  EXPECT_NE(text.find("with another text"), std::string::npos);
}

}  // namespace
}  // namespace tierd
