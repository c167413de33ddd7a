// Compares the statistics of successive active sets with unions of sets.
#include "tools/lab/activity/activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/random.h"

namespace tierd {
namespace {

using Set = std::set<uint32_t>;

SiteActivity draw(uint64_t seed, uint32_t neurons = 60, uint32_t tokens = 40) {
  Random random(seed);
  SiteActivity site{"layers.0.ffn", neurons, {}};
  std::vector<uint32_t> before;
  for (uint32_t t = 0; t < tokens; ++t) {
    std::vector<uint32_t> set;
    for (uint32_t i = 0; i < neurons; ++i) {
      const bool again = std::binary_search(before.begin(), before.end(), i);
      if (random.uniform() < (again ? 0.5 : i < 6 ? 0.5 : 0.08)) set.push_back(i);
    }
    site.tokens.push_back(set);
    before = std::move(set);
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
      for (uint32_t back = 1; back <= k && back <= t; ++back) {
        for (const uint32_t neuron : site.tokens[t - back]) window.insert(neuron);
      }
      const std::vector<uint32_t> set = site.tokens[t];
      for (const uint32_t neuron : set) fresh += window.count(neuron) == 0 ? 1 : 0;
      window.insert(set.begin(), set.end());
      held += window.size();
      active += set.size();
    }
    EXPECT_DOUBLE_EQ(shares.fresh[k - 1], static_cast<double>(fresh) / whole) << k;
    EXPECT_DOUBLE_EQ(shares.held[k - 1], static_cast<double>(held) / whole) << k;
  }
  EXPECT_DOUBLE_EQ(shares.active, static_cast<double>(active) / whole);
}

// True for any text: a longer window reads less and holds more, and holds the neurons that it held before and
// the new ones.
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
  // A neuron that fires with all others is the friend of all, and its copies are read although it never left.
  SiteActivity star{"", 6, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}}};
  EXPECT_DOUBLE_EQ(friend_bundling(star, 1, 1).cost, 2.0);
  EXPECT_EQ(friend_bundling(star, 1, 1).with_one, 6u);
  EXPECT_EQ(friend_bundling(star, 1, 1).friends, 2u);  // the center has another friend
}

void expect_shares(const FriendBundling& bundling, double here, double wanted, double used) {
  EXPECT_DOUBLE_EQ(bundling.here, here);
  EXPECT_DOUBLE_EQ(bundling.wanted, wanted);
  EXPECT_DOUBLE_EQ(bundling.used, used);
}

TEST(Activity, WhatCopiesOfFriendsAreGoodFor) {
  // Pairs: each copy is wanted at once. A star: its center, the only friend, never left the window.
  expect_shares(friend_bundling({"", 6, {{0, 1}, {2, 3}, {4, 5}, {0, 1}, {2, 3}}}, 1, 0), 0, 1, 0);
  expect_shares(friend_bundling({"", 6, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}}}, 1, 1), 1, 0, 0);
  // A neuron that always fires alone has no friend, so there are no copies.
  expect_shares(friend_bundling({"", 2, {{0}, {1}, {0}}}, 1, 0), 0, 0, 0);

  // Two friends that fire together once. Window of 1: copies are read with tokens 0 (wanted), 3 (used by 4),
  // 4 (here), 7 (used by 10, too late) and 10 (never used). Window of 3: with 0 (wanted), 4, 7 and 10 (here).
  const SiteActivity two{"", 2, {{0, 1}, {}, {}, {0}, {1}, {}, {}, {0}, {}, {}, {1}}};
  expect_shares(friend_bundling(two, 1, 0), 0.2, 0.2, 0.2);
  expect_shares(friend_bundling(two, 3, 0), 0.75, 0.25, 0);
  expect_shares(friend_bundling(two, 1, 4), 1.0 / 3, 0, 0);  // with 4, 7 and 10

  // 0 is the friend of 1 and 2. Window of 1: copies are read with tokens 0 (wanted), 1 (here), 4 (of 0, which
  // 6 uses too late: the copy of token 5 does not extend its stay), 5 (here since 4) and 6 (of 1, never
  // used). Window of 2: the copy of token 4 is used, and that of token 6 is here.
  const SiteActivity shared{"", 3, {{0, 1}, {0, 2}, {}, {}, {1}, {2}, {0}}};
  expect_shares(friend_bundling(shared, 1, 0), 0.4, 0.2, 0);
  expect_shares(friend_bundling(shared, 2, 0), 0.6, 0.2, 0.2);
  // The second of two copies of a neuron that one token fetches counts as resident, whether or not the token
  // uses the neuron.
  expect_shares(friend_bundling({"", 3, {{0, 1}, {0, 2}, {}, {}, {1, 2}}}, 1, 2), 0.5, 0, 0);
  expect_shares(friend_bundling({"", 3, {{0, 2}, {1, 2}, {}, {}, {0, 1, 2}}}, 1, 2), 0.5, 0.5, 0);
}

// True for any text: each copy is counted at most once.
TEST(Activity, SharesOfCopiesLeaveTheRest) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const uint32_t k : {1u, 4u}) {
      const FriendBundling bundling = friend_bundling(draw(seed), k, 5);
      for (const double share : {bundling.here, bundling.wanted, bundling.used}) EXPECT_GE(share, 0);
      EXPECT_GT(bundling.here + bundling.wanted + bundling.used, 0);
      EXPECT_LE(bundling.here + bundling.wanted + bundling.used, 1 + 1e-12);
    }
  }
}

TEST(Activity, TheReportHasMeans) {
  const std::vector<SiteActivity> sites = {draw(1), draw(2)};
  const ActivityFigures activity = activity_figures(sites, {draw(3), draw(4)}, {});
  EXPECT_DOUBLE_EQ(activity.mean.active, (activity.sites[0].active + activity.sites[1].active) / 2);
  const FriendBundling bundling = friend_bundling(sites[1], 4, 16);
  EXPECT_EQ(activity.sites[1].friends_here, bundling.here);
  EXPECT_EQ(activity.sites[1].friends_wanted, bundling.wanted);
  EXPECT_EQ(activity.sites[1].friends_used, bundling.used);
  EXPECT_DOUBLE_EQ(activity.mean.friends_here.value(),
                   (*activity.sites[0].friends_here + *activity.sites[1].friends_here) / 2);
  EXPECT_DOUBLE_EQ(activity.mean.friends_wanted.value(),
                   (*activity.sites[0].friends_wanted + *activity.sites[1].friends_wanted) / 2);
  EXPECT_DOUBLE_EQ(activity.mean.friends_used.value(),
                   (*activity.sites[0].friends_used + *activity.sites[1].friends_used) / 2);
  const std::string text = activity_text(activity);
  EXPECT_NE(text.find("window of k tokens"), std::string::npos);
  EXPECT_NE(text.find("with another text"), std::string::npos);
  EXPECT_NE(text.find("wanted by the same token"), std::string::npos);
}

}  // namespace
}  // namespace tierd
