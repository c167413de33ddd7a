#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/base/random.h"
#include "tests/plugins/table.h"
#include "tests/sanitized.h"
#include "tierd/policy/eviction_order.hpp"

namespace tierd {
namespace {

using Cache = Plugged<tierd_cache_1>;

// An embedding that shares the head's edition, two sites of layers, a head.
const std::vector<TestSite> kTied = {{6, 100, true, 3}, {10, 100}, {4, 300}, {6, 100}};
const std::vector<TestSite> kUntied = {{6, 100, true}, {10, 100}, {4, 300}, {6, 100}};

// Returns the slots of each edition.
std::vector<uint32_t> share(Cache& cache, const std::vector<TestSite>& sites, uint64_t bytes) {
  std::vector<TestSite> owners;
  std::copy_if(sites.begin(), sites.end(), std::back_inserter(owners),
               [](const TestSite& site) { return site.shares == TIERD_NO_SITE; });
  std::vector<uint32_t> slots;
  for (const TestSite& site : owners) slots.push_back(site.n);
  EXPECT_EQ(cache.table.share(cache.self, bytes, slots.data()), TIERD_OK);
  uint64_t used = 0;
  for (size_t e = 0; e < owners.size(); ++e) {
    EXPECT_LE(slots[e], owners[e].n);
    used += uint64_t{slots[e]} * owners[e].slot_bytes;
  }
  EXPECT_LE(used, bytes);
  return slots;
}

TEST(CacheNone, KeepsNothing) {
  Cache cache("cache", "none", kUntied);
  EXPECT_EQ(share(cache, kUntied, 1 << 20), (std::vector<uint32_t>{0, 0, 0, 0}));
  const Admitted answer = admit(cache, 1, {0, 3, 9}, 0);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kBypass, kBypass, kBypass}));
  EXPECT_TRUE(answer.victims.empty());
}

// 1000 + 1200 + 600 = 2800 bytes are used whole; half of them: 5 of 10, 2 of 4, 3 of 6 = 500+600+300.
TEST(CachePinned, EverySiteKeepsTheSameShare) {
  Cache cache("cache", "pinned", kUntied);
  EXPECT_EQ(share(cache, kUntied, 1400), (std::vector<uint32_t>{0, 5, 2, 3}));
  EXPECT_EQ(share(cache, kUntied, 0), (std::vector<uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(share(cache, kUntied, 99), (std::vector<uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(share(cache, kUntied, 100), (std::vector<uint32_t>{0, 1, 0, 0}));  // rounding loses no slot
  EXPECT_EQ(share(cache, kUntied, 2800), (std::vector<uint32_t>{0, 10, 4, 6}));
  EXPECT_EQ(share(cache, kUntied, 2999),
            (std::vector<uint32_t>{1, 10, 4, 6}));  // the embedding gets the rest
  EXPECT_EQ(share(cache, kUntied, 1 << 20), (std::vector<uint32_t>{6, 10, 4, 6}));
  Cache tied("cache", "pinned", kTied);
  EXPECT_EQ(share(tied, kTied, 1 << 20), (std::vector<uint32_t>{10, 4, 6}));
}

TEST(CachePinned, FillsWhatItSharedAndKeepsNothingElse) {
  Cache cache("cache", "pinned", kUntied);
  share(cache, kUntied, 1400);
  ASSERT_EQ(cache.table.fill(cache.self), TIERD_OK);
  ASSERT_EQ(cache.wishes.size(), 3u);
  EXPECT_EQ(cache.wishes[0].edition, 1u);
  EXPECT_EQ(cache.wishes[0].site, TIERD_NO_SITE);
  EXPECT_THAT(*cache.wishes[0].neurons, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(cache.wishes[2].edition, 3u);
  EXPECT_EQ(cache.wishes[2].neurons->size(), 3u);
  EXPECT_EQ(cache.table.ahead, nullptr) << "it wants nothing while the run goes on";
  // One of its own neurons whose read failed may be kept later; other neurons never are.
  EXPECT_EQ(admit(cache, 1, {3, 4, 5, 9}, 1).verdicts,
            (std::vector<uint8_t>{kKeep, kBypass, kBypass, kBypass}));
}

// Grows by one slot at a time. Returns the order in which neurons become resident.
std::vector<uint32_t> order_of(Cache& cache, const std::vector<TestSite>& sites) {
  std::vector<uint32_t> order;
  for (uint32_t slots = 1; slots <= sites[0].n; ++slots) {
    share(cache, sites, uint64_t{slots} * sites[0].slot_bytes);
    cache.wishes.clear();
    EXPECT_EQ(cache.table.fill(cache.self), TIERD_OK);
    const std::vector<uint32_t>& kept = cache.wishes.front().neurons.value();
    EXPECT_EQ(kept.size(), slots);
    for (const uint32_t neuron : kept) {
      if (std::find(order.begin(), order.end(), neuron) == order.end()) order.push_back(neuron);
    }
  }
  return order;
}

TEST(CacheStatic, KeepsTheHottestAndWhatIsNoNumberLast) {
  const std::vector<TestSite> site = {{7, 100}};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<std::vector<float>, std::vector<uint32_t>>> cases = {
      {{1, 3, 2, 3, 0, -1, 5}, {6, 1, 3, 2, 0, 4, 5}},
      {{kNan, 1, -kNan, 3, -kInfinity, 2, kInfinity}, {6, 3, 5, 1, 4, 0, 2}},
      {std::vector<float>(7, kNan), {0, 1, 2, 3, 4, 5, 6}},
  };
  for (const auto& [heat, order] : cases) {
    Cache cache("cache", "static", site, {}, {{"site 0", heat}});
    EXPECT_EQ(order_of(cache, site), order);
  }
  Cache cold("cache", "static", site);
  EXPECT_EQ(order_of(cold, site), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(CacheStatic, AnEditionHasTheHeatOfTheSiteWhoseNeuronsItHolds) {
  const std::vector<TestSite> tied = {{4, 100, true, 1}, {4, 100}};
  Cache cache("cache", "static", tied, {}, {{"site 0", {3, 2, 1, 0}}, {"site 1", {0, 1, 2, 3}}});
  EXPECT_EQ(order_of(cache, tied), (std::vector<uint32_t>{3, 2, 1, 0}));
}

TEST(CacheLru, EverySiteKeepsTheSameShare) {
  Cache cache("cache", "lru", kUntied);
  // half of 3400 bytes: 3 of 6, 5 of 10, 2 of 4, 3 of 6
  EXPECT_EQ(share(cache, kUntied, 1700), (std::vector<uint32_t>{3, 5, 2, 3}));
  EXPECT_EQ(share(cache, kUntied, 3400), (std::vector<uint32_t>{6, 10, 4, 6}));
  EXPECT_EQ(share(cache, kUntied, 0), (std::vector<uint32_t>{0, 0, 0, 0}));
  Cache tied("cache", "lru", kTied);
  EXPECT_EQ(share(tied, kTied, 1400), (std::vector<uint32_t>{5, 2, 3}));
}

TEST(CacheLru, DropsTheLeastRecentlyUsedThatMayGo) {
  Cache cache("cache", "lru", kUntied);
  const auto land = [&](std::vector<uint32_t> idx) {
    EXPECT_EQ(cache.table.landed(cache.self, 1, idx.data(), static_cast<uint32_t>(idx.size())), TIERD_OK);
  };
  const auto drop = [&](std::vector<uint32_t> idx) {
    EXPECT_EQ(cache.table.dropped(cache.self, 1, idx.data(), static_cast<uint32_t>(idx.size()),
                                  TIERD_DROPPED_EVICTED),
              TIERD_OK);
  };
  const auto touch = [&](const std::vector<uint32_t>& idx) {
    const tierd_set_view set = set_of(1, idx);
    EXPECT_EQ(cache.table.touch(cache.self, &set), TIERD_OK);
  };
  // Free slots first, no victim.
  EXPECT_EQ(admit(cache, 1, {0, 1, 2}, 3).verdicts, (std::vector<uint8_t>{kKeep, kKeep, kKeep}));
  land({0, 1, 2});
  touch({0, 1, 2});
  touch({0, 7});  // 7 is not resident, which is allowed
  Admitted answer = admit(cache, 1, {5, 6}, 1);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kKeep, kKeep}));
  EXPECT_EQ(answer.victims, (std::vector<uint32_t>{1}));
  drop({1});
  land({5, 6});  // order: 2, 0, 5, 6
  cache.evictable = [](uint32_t, uint32_t neuron) { return neuron == 2 || neuron == 5 ? 0 : 1; };
  answer = admit(cache, 1, {1, 3, 4}, 0);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kKeep, kKeep, kBypass}));
  EXPECT_EQ(answer.victims, (std::vector<uint32_t>{0, 6}));
  drop({0, 6});
  drop({0, 6});  // reported twice
  land({5});     // reported twice
  tierd_set_view all = set_of(1, {});
  all.n = 10;
  all.idx = nullptr;
  EXPECT_EQ(cache.table.touch(cache.self, &all), TIERD_OK);  // order: 2, 5
  cache.evictable = nullptr;
  EXPECT_EQ(admit(cache, 1, {7, 8, 9}, 0).victims, (std::vector<uint32_t>{2, 5}));
}

TEST(CacheFifo, DropsWhatCameFirstHoweverOftenItIsUsed) {
  Cache cache("cache", "fifo", kUntied);
  const std::vector<uint32_t> came{4, 1, 7};
  EXPECT_EQ(cache.table.landed(cache.self, 1, came.data(), 3), TIERD_OK);
  EXPECT_EQ(cache.table.touch, nullptr);
  EXPECT_EQ(admit(cache, 1, {0, 2}, 0).victims, (std::vector<uint32_t>{4, 1}));
  EXPECT_EQ(cache.table.dropped(cache.self, 1, came.data(), 1, TIERD_DROPPED_EVICTED), TIERD_OK);
  EXPECT_EQ(cache.table.landed(cache.self, 1, came.data(), 1), TIERD_OK);  // landed again
  EXPECT_EQ(admit(cache, 1, {0, 2, 3}, 0).victims, (std::vector<uint32_t>{1, 7, 4}));
}

// Site 1 of kUntied, ten neurons, with the calls that the kernel makes.
class CacheContextLfu : public testing::Test {
 protected:
  explicit CacheContextLfu(const std::vector<Setting>& settings = {})
      : cache_("cache", "context-lfu", kUntied, settings) {}

  void land(const std::vector<uint32_t>& idx) {
    EXPECT_EQ(cache_.table.landed(cache_.self, 1, idx.data(), static_cast<uint32_t>(idx.size())), TIERD_OK);
  }
  void drop(const std::vector<uint32_t>& idx) {
    EXPECT_EQ(cache_.table.dropped(cache_.self, 1, idx.data(), static_cast<uint32_t>(idx.size()),
                                   TIERD_DROPPED_EVICTED),
              TIERD_OK);
  }
  void touch(const std::vector<uint32_t>& idx) {
    const tierd_set_view set = set_of(1, idx);
    EXPECT_EQ(cache_.table.touch(cache_.self, &set), TIERD_OK);
  }
  void begin(uint64_t sequence) { EXPECT_EQ(cache_.table.begin_sequence(cache_.self, sequence), TIERD_OK); }
  void end(uint64_t sequence) { EXPECT_EQ(cache_.table.end_sequence(cache_.self, sequence), TIERD_OK); }
  // 0 and 1 are resident and were used three times; 2 and 3 are not and were used once.
  void use_some() {
    land({0, 1});
    touch({0, 1, 2});
    touch({0, 1, 3});
    touch({0, 1});
  }

  Cache cache_;
};

TEST_F(CacheContextLfu, WhoIsUsedMoreOftenTakesThePlaceOfTheLeastUsed) {
  EXPECT_EQ(admit(cache_, 1, {0, 1, 2}, 3).verdicts, (std::vector<uint8_t>{kKeep, kKeep, kKeep}));
  land({0, 1, 2});
  touch({0, 1, 2});  // one use each
  touch({0, 2});     // two of 0 and 2
  // One use of 5 is not more than the one of 1; two are.
  Admitted answer = admit(cache_, 1, {5}, 0);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kBypass}));
  EXPECT_TRUE(answer.victims.empty());
  touch({0, 5});  // three of 0
  answer = admit(cache_, 1, {5}, 0);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kKeep}));
  EXPECT_EQ(answer.victims, (std::vector<uint32_t>{1}));
  drop({1});
  land({5});
  touch({5});  // two of 5, as of 2
  // The neuron used most often gets the free slot, the next one the first victim: 8 before 7 before 6.
  touch({7, 8});
  touch({7, 8});
  touch({8});
  answer = admit(cache_, 1, {6, 7, 8}, 1);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kBypass, kKeep, kKeep}));
  EXPECT_EQ(answer.victims, (std::vector<uint32_t>{2}));  // 5 was used later
  // A neuron that may not be evicted is skipped.
  cache_.evictable = [](uint32_t, uint32_t neuron) { return neuron == 2 ? 0 : 1; };
  EXPECT_EQ(admit(cache_, 1, {7}, 0).victims, (std::vector<uint32_t>{5}));
  cache_.evictable = [](uint32_t, uint32_t) { return 0; };
  EXPECT_EQ(admit(cache_, 1, {7, 8}, 1).verdicts, (std::vector<uint8_t>{kBypass, kKeep}));
}

TEST_F(CacheContextLfu, AmongEqualsTheOldestUseLeavesAndThenTheLowestNumber) {
  land({1, 3, 4, 6});
  touch({4, 6});
  touch({1, 3});
  touch({0, 2, 5});
  EXPECT_EQ(admit(cache_, 1, {0, 2, 5}, 0).victims, (std::vector<uint32_t>{4, 6, 1}));
}

TEST_F(CacheContextLfu, WhatIsReadAheadIsNoUse) {
  land({0, 1, 2});
  touch({0, 1});
  // 2 was prefetched and never used, so the first used neuron evicts it. The others stay.
  const Admitted answer = admit(cache_, 1, {3, 4}, 0);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kKeep, kBypass}));
  EXPECT_EQ(answer.victims, (std::vector<uint32_t>{2}));
}

TEST_F(CacheContextLfu, CountsBeginAnewWithAContext) {
  begin(0);
  use_some();
  EXPECT_EQ(admit(cache_, 1, {2, 3}, 0).verdicts, (std::vector<uint8_t>{kBypass, kBypass}));
  end(0);
  EXPECT_EQ(admit(cache_, 1, {2}, 0).verdicts, (std::vector<uint8_t>{kBypass}));  // not at an end
  begin(0);
  touch({1});
  // One use of 1, none of 0.
  const Admitted answer = admit(cache_, 1, {2, 3}, 0);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{kKeep, kBypass}));
  EXPECT_EQ(answer.victims, (std::vector<uint32_t>{0}));
}

TEST_F(CacheContextLfu, AContextThatJoinsOthersForgetsNothing) {
  end(7);  // began before this cache was made
  begin(0);
  use_some();
  begin(1);
  end(0);
  begin(2);
  EXPECT_EQ(admit(cache_, 1, {2}, 0).verdicts, (std::vector<uint8_t>{kBypass}));
  end(1);
  end(2);
  begin(2);
  EXPECT_EQ(admit(cache_, 1, {2}, 0).verdicts, (std::vector<uint8_t>{kKeep}));
}

class CacheContextLfuOfATask : public CacheContextLfu {
 protected:
  CacheContextLfuOfATask() : CacheContextLfu({{"counts", std::string("task"), "test"}}) {}
};
TEST_F(CacheContextLfuOfATask, CountsAreNeverForgotten) {
  begin(0);
  use_some();
  end(0);
  begin(1);
  EXPECT_EQ(admit(cache_, 1, {2}, 0).verdicts, (std::vector<uint8_t>{kBypass}));
}

class CacheContextLfuThatFades : public CacheContextLfu, public testing::WithParamInterface<double> {
 protected:
  CacheContextLfuThatFades() : CacheContextLfu({{"fade", GetParam(), "test"}}) {}
};
// A fourth pass needs 2, which was used three passes ago, while 0 and 1 were used in each of the three.
TEST_P(CacheContextLfuThatFades, WhatWasUsedLongAgoWeighsLess) {
  const double fade = GetParam();
  const double of_here = fade + fade * fade + fade * fade * fade;
  const double of_comer = fade * fade * fade + 1;
  use_some();
  const Admitted answer = admit(cache_, 1, {2}, 0);
  EXPECT_EQ(answer.verdicts, (std::vector<uint8_t>{of_comer > of_here ? kKeep : kBypass}));
  // 3 was used in the second and in the last of nine passes.
  land({3});
  for (int pass = 0; pass < 5; ++pass) touch({5});
  touch({3});
  const double of_old = of_here * std::pow(fade, 6);
  const double of_recent = fade + std::pow(fade, 8);
  EXPECT_EQ(admit(cache_, 1, {5}, 0).victims, (std::vector<uint32_t>{of_old > of_recent ? 3u : 0u}));
}
INSTANTIATE_TEST_SUITE_P(Shares, CacheContextLfuThatFades, testing::Values(0.0, 0.5, 0.7, 0.9, 0.99, 1.0),
                         [](const auto& test) { return std::to_string(std::lround(test.param * 100)); });

TEST_F(CacheContextLfu, ASmallerTierDropsTheLeastUsed) {
  const std::vector<uint32_t> whole = share(cache_, kUntied, 3400);
  ASSERT_EQ(whole[1], 10u);
  land({0, 1, 2, 3, 4, 5});
  for (uint32_t from = 0; from < 4; ++from) {
    std::vector<uint32_t> used;
    for (uint32_t neuron = from; neuron < 6; ++neuron) used.push_back(5 - neuron);
    touch(used);  // in all: 5 once, 4 twice, 3 three times, the others four times
  }
  std::vector<uint32_t> slots = whole;
  std::vector<tierd_neuron> victims(6);
  tierd_victims_out out{6, 0, victims.data()};
  ASSERT_EQ(cache_.table.resize(cache_.self, 1020, slots.data(), &out), TIERD_OK);
  ASSERT_EQ(slots[1], 4u);
  ASSERT_EQ(out.n, 2u);
  EXPECT_EQ(victims[0].neuron, 5u);
  EXPECT_EQ(victims[1].neuron, 4u);
}

// Compares with a plain list.
TEST(EvictionOrder, KeepsTheOrderOfAList) {
  Random random(21);
  for (const uint32_t n : {1u, 2u, 9u}) {
    Order order(n);
    std::vector<uint32_t> list;
    for (int round = 0; round < 2'000; ++round) {
      const uint32_t i = random.below(n);
      const auto place = std::find(list.begin(), list.end(), i);
      const bool there = place != list.end();
      EXPECT_EQ(order.contains(i), there);
      switch (random.below(3)) {
        case 0:
          order.append(i);
          if (!there) list.push_back(i);
          break;
        case 1:
          order.move_to_end(i);
          if (there) std::rotate(place, place + 1, list.end());
          break;
        default:
          order.remove(i);
          if (there) list.erase(place);
      }
      std::vector<uint32_t> told;
      for (const uint32_t neuron : order) told.push_back(neuron);
      ASSERT_EQ(told, list);
      ASSERT_EQ(order.size(), list.size());
    }
  }
}

// Attention, a network that a step uses in part, and a head whose edition the embedding shares. Sites that
// every step uses whole get slots before the network.
TEST(Caches, WhatIsUsedWholeComesFirst) {
  const std::vector<TestSite> sites = {
      {6, 100, true, 3}, {10, 100}, {200, 10, false, TIERD_NO_SITE, TIERD_AXIS_NEURON}, {6, 100}};
  for (const char* name : {"lru", "lfu", "context-lfu", "fifo", "residency-window"}) {
    Cache cache("cache", name, sites);
    EXPECT_EQ(share(cache, sites, 800), (std::vector<uint32_t>{5, 0, 3})) << name;
    EXPECT_EQ(share(cache, sites, 1600), (std::vector<uint32_t>{10, 0, 6})) << name;
    EXPECT_EQ(share(cache, sites, 2000), (std::vector<uint32_t>{10, 40, 6})) << name;
    EXPECT_EQ(share(cache, sites, 1 << 20), (std::vector<uint32_t>{10, 200, 6})) << name;
  }
}

// Channels of each operator share the room that the whole rows of the head leave.
TEST(Caches, ChannelsShareWhatIsLeftBehindWholeSites) {
  const std::vector<TestSite> sites = {{6, 100, true},
                                       {20, 50, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL},
                                       {100, 10, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL},
                                       {8, 25, true, TIERD_NO_SITE, TIERD_AXIS_EXPERT},
                                       {6, 100}};
  for (const char* name : {"lru", "lfu", "context-lfu", "fifo", "residency-window", "static"}) {
    Cache cache("cache", name, sites);
    EXPECT_EQ(share(cache, sites, 600), (std::vector<uint32_t>{0, 0, 0, 0, 6})) << name;
    EXPECT_EQ(share(cache, sites, 1700), (std::vector<uint32_t>{0, 10, 50, 4, 6})) << name;
    EXPECT_EQ(share(cache, sites, 2900), (std::vector<uint32_t>{1, 20, 100, 8, 6})) << name;
  }
}

// A step always passes attention, but an expert only if a router has chosen it.
TEST(Caches, ExpertsInChannelsShareWhatOthersLeave) {
  std::vector<TestSite> sites(5, TestSite{20, 10, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL});
  sites.push_back({6, 100});
  for (const uint32_t s : {1u, 2u, 4u}) sites[s].expert = s;
  for (const char* name : {"lru", "lfu", "context-lfu", "fifo", "static"}) {
    Cache cache("cache", name, sites);
    EXPECT_EQ(share(cache, sites, 600), (std::vector<uint32_t>{0, 0, 0, 0, 0, 6})) << name;
    EXPECT_EQ(share(cache, sites, 900), (std::vector<uint32_t>{15, 0, 0, 15, 0, 6})) << name;
    EXPECT_EQ(share(cache, sites, 1300), (std::vector<uint32_t>{20, 10, 10, 20, 10, 6})) << name;
    EXPECT_EQ(share(cache, sites, 1 << 20), (std::vector<uint32_t>{20, 20, 20, 20, 20, 6})) << name;
  }
  Cache pinned("cache", "pinned", sites);
  EXPECT_EQ(share(pinned, sites, 500), (std::vector<uint32_t>{10, 0, 0, 10, 0, 3}));
  EXPECT_EQ(share(pinned, sites, 1300), (std::vector<uint32_t>{20, 10, 10, 20, 10, 6}));
}

// Whole operators with small channels get slots first; those of equal size share equally.
TEST(Caches, SmallChannelsMayComeFirst) {
  const std::vector<TestSite> sites = {{6, 100, true},
                                       {20, 50, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL},
                                       {100, 10, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL},
                                       {50, 10, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL},
                                       {6, 100}};
  Cache cache("cache", "context-lfu", sites, {{"split", std::string("small-first"), "test"}});
  EXPECT_EQ(share(cache, sites, 500), (std::vector<uint32_t>{0, 0, 0, 0, 5}));
  EXPECT_EQ(share(cache, sites, 900), (std::vector<uint32_t>{0, 0, 20, 10, 6}));
  EXPECT_EQ(share(cache, sites, 2600), (std::vector<uint32_t>{0, 10, 100, 50, 6}));
  EXPECT_EQ(share(cache, sites, 3400), (std::vector<uint32_t>{3, 20, 100, 50, 6}));
}

// An embedding that shares no edition comes last: all of its rows would save one read a token.
TEST(Caches, AnEmbeddingOfItsOwnComesLast) {
  const std::vector<TestSite> sites = {
      {6, 100, true}, {10, 100}, {200, 10, false, TIERD_NO_SITE, TIERD_AXIS_NEURON}};
  for (const char* name : {"lru", "lfu", "context-lfu", "fifo", "residency-window"}) {
    Cache cache("cache", name, sites);
    EXPECT_EQ(share(cache, sites, 1500), (std::vector<uint32_t>{0, 10, 50})) << name;
    EXPECT_EQ(share(cache, sites, 3200), (std::vector<uint32_t>{2, 10, 200})) << name;
  }
}

// Random sites and sizes: the sum never exceeds the memory and falls short by less than one slot a site.
TEST(Caches, SharesFitWhateverTheSizes) {
  Random random(12);
  for (int round = 0; round < (kSanitized ? 400 : 3'000); ++round) {
    std::vector<TestSite> sites;
    uint64_t whole = 0;
    for (uint32_t s = 0; s < 1 + random.below(8); ++s) {
      const TestSite site{1 + random.below(random.below(2) == 0 ? 5 : 60'000), 4096 * (1 + random.below(128)),
                          s == 0 && random.below(2) == 0};
      whole += uint64_t{site.n} * site.slot_bytes;
      sites.push_back(site);
    }
    // sizes at and around a whole number of slots, where rounding could fail
    const uint64_t base = whole / (1 + random.below(9)) * (1 + random.below(4));
    const uint64_t bytes = base + random.below(3) - std::min<uint64_t>(base, 1);
    for (const char* name : {"lru", "lfu", "context-lfu", "pinned", "static"}) {
      Cache cache("cache", name, sites);
      const std::vector<uint32_t> slots = share(cache, sites, bytes);
      uint64_t used = 0;
      uint64_t most_left = 0;
      for (size_t s = 0; s < sites.size(); ++s) {
        used += uint64_t{slots[s]} * sites[s].slot_bytes;
        if (slots[s] < sites[s].n) most_left += sites[s].slot_bytes;
      }
      EXPECT_LE(used, bytes);
      if (bytes >= whole) {
        EXPECT_EQ(used, whole);
      } else if (std::string(name) != "pinned") {
        EXPECT_GT(used + most_left + 4096, bytes);
      }
      if (HasFailure()) FAIL() << name << " round " << round;
    }
  }
}

}  // namespace
}  // namespace tierd
