// Hermes' strategies except the state table: another heat, the GPU's hot set, the DIMMs' homes, and the unit
// of each neuron.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/random.h"
#include "tests/plugins/table.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Neurons = std::vector<uint32_t>;

// ---- firing-rate

TEST(FiringRate, IsAMeanThatForgets) {
  Plugged<tierd_heat_1> rate("predictor", "firing-rate", {network(3)}, {{"tokens", int64_t{4}, "test"}});
  const auto told = [&](const Neurons& neurons, const Neurons& counts, uint32_t rows, bool prompt) {
    tierd_fired_view view{};
    view.size = sizeof view;
    view.rows = rows;
    view.n = static_cast<uint32_t>(neurons.size());
    view.prompt = prompt ? 1 : 0;
    view.idx = neurons.data();
    view.count = counts.data();
    EXPECT_EQ(rate.table.fired(rate.self, &view), TIERD_OK);
    std::vector<uint8_t> heat(3);
    EXPECT_EQ(rate.table.heat(rate.self, 0, heat.data()), TIERD_OK);
    return std::vector<int>(heat.begin(), heat.end());
  };
  EXPECT_THAT(told({0, 1}, {100, 4}, 100, true), ElementsAre(15, 3, 0)) << "15 times the root of .04";
  EXPECT_THAT(told({2}, {1}, 1, false), ElementsAre(13, 3, 8)) << ".75, .03, .25";
  EXPECT_THAT(told({0}, {1}, 2, false), ElementsAre(12, 2, 6)) << "one of two rows: .6875";
}

// ---- hot-set

constexpr uint32_t kGpu = 2;

class HotSet : public Plugged<tierd_cache_1> {
 public:
  explicit HotSet(const std::vector<TestSite>& sites, const HeatOfSites& tensors = {},
                  const std::vector<Setting>& settings = {})
      : Plugged("cache", "hot-set", sites, settings, tensors, {}, 2, {{{"ndp"}, {"gpu"}}, kGpu}) {
    // Rows have their home at the GPU; neurons of networks are copies.
    at_home = [sites](uint32_t edition, uint32_t) { return sites[edition].axis == TIERD_AXIS_ROW; };
  }
  Neurons share(uint64_t bytes, Neurons most) {
    EXPECT_EQ(table.share(self, bytes, most.data()), TIERD_OK);
    return most;
  }
  std::map<uint32_t, Neurons> filled() {
    wishes.clear();
    EXPECT_EQ(table.fill(self), TIERD_OK);
    return wished();
  }
  std::map<uint32_t, Neurons> idle(uint32_t site) {
    wishes.clear();
    EXPECT_EQ(table.idle(self, site), TIERD_OK);
    return wished();
  }
  void landed(uint32_t edition, const Neurons& neurons) {
    EXPECT_EQ(table.landed(self, edition, neurons.data(), static_cast<uint32_t>(neurons.size())), TIERD_OK);
  }
  void dropped(uint32_t edition, const Neurons& neurons) {
    EXPECT_EQ(table.dropped(self, edition, neurons.data(), static_cast<uint32_t>(neurons.size()),
                            TIERD_DROPPED_EVICTED),
              TIERD_OK);
  }
  struct Admitted {
    std::vector<int> verdicts;
    Neurons victims;
  };
  Admitted admit(uint32_t edition, const Neurons& missing, int priority, uint32_t free_slots) {
    tierd_set_view set{};
    set.size = sizeof set;
    set.site = edition;
    set.edition = edition;
    set.n = static_cast<uint32_t>(missing.size());
    set.idx = missing.data();
    std::vector<uint8_t> verdicts(missing.size(), 9);
    std::vector<tierd_neuron> room(missing.size());
    tierd_victims_out out{set.n, 0, room.data()};
    EXPECT_EQ(table.admit(self, &set, priority, free_slots, verdicts.data(), &out), TIERD_OK);
    Admitted admitted{{verdicts.begin(), verdicts.end()}, {}};
    for (uint32_t i = 0; i < out.n; ++i) {
      EXPECT_EQ(room[i].edition, edition);
      admitted.victims.push_back(room[i].neuron);
    }
    return admitted;
  }

 private:
  std::map<uint32_t, Neurons> wished() const {
    std::map<uint32_t, Neurons> all;
    for (const Wish& wish : wishes) {
      EXPECT_EQ(wish.site, TIERD_NO_SITE);
      all[wish.edition] = wish.neurons.value_or(Neurons{});
    }
    return all;
  }
};

TEST(HotSet, KeepsWhatIsAtHomeAndThePartitionsNeurons) {
  HotSet cache({{4, 64}, network(8)}, {{"site 1.hot", {0, 1, 0, 1, 0, 0, 0, 0}}});
  EXPECT_THAT(cache.share(64 * 7, {4, 8}), ElementsAre(4, 3));
  const auto filled = cache.filled();
  EXPECT_THAT(filled.at(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(filled.at(1), ElementsAre(1, 3));
}

TEST(HotSet, DrawsTheFirstOnesWithoutAPartition) {
  HotSet cache({{4, 64}, network(100)});
  EXPECT_THAT(cache.share(64 * 14, {4, 100}), ElementsAre(4, 10));
  const Neurons first = cache.filled().at(1);
  EXPECT_EQ(first.size(), 10u);
  EXPECT_NE(first.back(), 9u) << "not the first by number";
  HotSet again({{4, 64}, network(100)});
  (void)again.share(64 * 14, {4, 100});
  EXPECT_EQ(again.filled().at(1), first) << "the same seed, the same lot";
}

TEST(HotSet, HotterOnesTakeThePlaceOfTheCoolest) {
  HotSet cache({network(6), {4, 64}}, {{"site 0.hot", {1, 1, 1, 0, 0, 0}}});
  (void)cache.share(64 * 7, {6, 4});
  cache.landed(0, {0, 1, 2});
  EXPECT_THAT(cache.idle(1), IsEmpty()) << "nobody says how hot they are";
  cache.site_heat[0] = {12, 3, 11, 15, 11, 10};
  EXPECT_THAT(cache.idle(1), ElementsAre(testing::Pair(0, Neurons{3}))) << "15 for 3; 11 is not more than 11";
  const HotSet::Admitted admitted = cache.admit(0, {3, 4}, TIERD_PRIORITY_MIGRATION, 0);
  EXPECT_THAT(admitted.verdicts, ElementsAre(TIERD_VERDICT_KEEP, TIERD_VERDICT_REFUSE));
  EXPECT_THAT(admitted.victims, ElementsAre(1));
  cache.dropped(0, {1});
  cache.landed(0, {3});
  EXPECT_THAT(cache.idle(1), IsEmpty());
  cache.evictable = [](uint32_t, uint32_t) { return 0; };
  cache.site_heat[0] = {0, 0, 0, 0, 15, 15};
  EXPECT_THAT(cache.idle(1), IsEmpty()) << "nobody can go";
}

TEST(HotSet, WhatAPassMissesStreamsBy) {
  HotSet cache({network(4), {4, 64}});
  (void)cache.share(64 * 6, {4, 4});
  EXPECT_THAT(cache.admit(0, {0, 1}, TIERD_PRIORITY_DEMAND, 2).verdicts,
              ElementsAre(TIERD_VERDICT_BYPASS, TIERD_VERDICT_BYPASS));
  EXPECT_THAT(cache.admit(1, {0, 1}, TIERD_PRIORITY_DEMAND, 1).verdicts,
              ElementsAre(TIERD_VERDICT_KEEP, TIERD_VERDICT_BYPASS));
}

// Ties are broken at random: in order of number, the neurons of one DIMM would all come first.
TEST(HotSet, EqualsAreDrawn) {
  HotSet cache({network(200), {1, 64}}, {{"site 0.hot", std::vector<float>(200, 0)}});
  (void)cache.share(64 * 21, {200, 1});
  cache.site_heat[0] = std::vector<uint8_t>(200, 15);
  const Neurons wanted = cache.idle(1).at(0);
  EXPECT_EQ(wanted.size(), 20u);
  EXPECT_GT(wanted.back(), 100u);
}

// Compares with sorted lists: the hottest absent neurons replace cooler resident ones, coolest first.
TEST(HotSet, ExchangesAreThoseOfSortedLists) {
  Random random(8);
  for (int round = 0; round < 200; ++round) {
    const uint32_t n = 1 + random.below(120), slots = random.below(n + 1);
    HotSet cache({network(n), {1, 64}}, {{"site 0.hot", std::vector<float>(n, 1)}});
    (void)cache.share(64 * (slots + 1), {n, 1});
    cache.site_heat[0].resize(n);
    const uint32_t levels = 1 + random.below(16);
    Neurons here, absent, may_leave;
    for (uint32_t i = 0; i < n; ++i) {
      cache.site_heat[0][i] = static_cast<uint8_t>(15 - random.below(levels));
      (here.size() < slots && random.below(3) != 0 ? here : absent).push_back(i);
    }
    cache.landed(0, here);
    cache.evictable = [](uint32_t, uint32_t neuron) { return neuron % 3 != 0 ? 1 : 0; };
    std::ranges::copy_if(here, std::back_inserter(may_leave), [](uint32_t i) { return i % 3 != 0; });
    const auto heats = [&](const Neurons& neurons) {
      std::vector<int> all;
      for (const uint32_t i : neurons) all.push_back(cache.site_heat[0][i]);
      std::ranges::sort(all);
      return all;
    };
    std::vector<int> arriving = heats(absent), leaving = heats(may_leave), expected;
    std::erase_if(arriving, [](int heat) { return heat <= 10; });
    const size_t room = slots - here.size();
    for (size_t k = 0; k < arriving.size(); ++k) {
      const int hot = arriving[arriving.size() - 1 - k];
      if (k < room || (k - room < leaving.size() && leaving[k - room] < hot)) expected.push_back(hot);
    }
    std::ranges::sort(expected);
    const auto wished = cache.idle(1);
    const Neurons neurons = wished.contains(0) ? wished.at(0) : Neurons{};
    EXPECT_EQ(heats(neurons), expected) << "round " << round;
    EXPECT_TRUE(std::ranges::is_sorted(neurons));
    for (const uint32_t i : neurons) EXPECT_FALSE(std::ranges::binary_search(here, i));
  }
}

// ---- home

TEST(Home, KeepsWhatIsAtHomeAndWhatMovesThere) {
  Plugged<tierd_cache_1> cache("cache", "home", {network(8)}, {}, {}, {}, 2, {{{"ndp"}, {"ndp"}}, 1});
  std::set<uint32_t> homes = {0, 2, 4, 6};
  cache.at_home = [&](uint32_t, uint32_t neuron) { return homes.contains(neuron); };
  Neurons slots = {8};
  ASSERT_EQ(cache.table.share(cache.self, 64 * 5, slots.data()), TIERD_OK);
  EXPECT_THAT(slots, ElementsAre(5)) << "room for one that moves here";
  ASSERT_EQ(cache.table.fill(cache.self), TIERD_OK);
  ASSERT_EQ(cache.wishes.size(), 1u);
  EXPECT_THAT(*cache.wishes[0].neurons, ElementsAre(0, 2, 4, 6));
  const Neurons here = {0, 2, 4, 6};
  ASSERT_EQ(cache.table.landed(cache.self, 0, here.data(), 4), TIERD_OK);

  const auto admit = [&](const Neurons& missing, int priority, uint32_t free_slots) {
    tierd_set_view set{};
    set.size = sizeof set;
    set.n = static_cast<uint32_t>(missing.size());
    set.idx = missing.data();
    std::vector<uint8_t> verdicts(missing.size());
    std::vector<tierd_neuron> room(missing.size());
    tierd_victims_out out{set.n, 0, room.data()};
    EXPECT_EQ(cache.table.admit(cache.self, &set, priority, free_slots, verdicts.data(), &out), TIERD_OK);
    std::string text;
    for (const uint8_t verdict : verdicts) text += "kbr"[verdict];
    for (uint32_t i = 0; i < out.n; ++i) text += " -" + std::to_string(room[i].neuron);
    return text;
  };
  EXPECT_EQ(admit({1, 3}, TIERD_PRIORITY_DEMAND, 1), "bb") << "others pass through";
  EXPECT_EQ(admit({1, 3}, TIERD_PRIORITY_MIGRATION, 1), "kr")
      << "who moves here stays, as far as there is room";
  homes = {0, 2, 6, 1};
  EXPECT_EQ(admit({3}, TIERD_PRIORITY_MIGRATION, 0), "k -4") << "4 has left for another home";
  EXPECT_EQ(admit({3, 5}, TIERD_PRIORITY_MIGRATION, 0), "kr -4");
}

// ---- hot-cold

class HotCold : public Plugged<tierd_balancer_1> {
 public:
  explicit HotCold(const std::vector<TestSite>& sites, const HeatOfSites& tensors = {},
                   const std::vector<Setting>& settings = {}, uint32_t dimms = 2)
      : Plugged("balancer", "hot-cold", sites, settings, tensors, {}, dimms + 1, machine(dimms)),
        gpu_(dimms) {
    homes_.resize(sites.size());
    for (uint32_t e = 0; e < sites.size(); ++e) {
      homes_[e].assign(sites[e].n, 99);
      EXPECT_EQ(table.place(self, e, homes_[e].data()), TIERD_OK);
    }
    home = [this](uint32_t edition, uint32_t neuron) -> uint32_t { return homes_[edition][neuron]; };
    holders = [this](uint32_t, uint32_t neuron) -> uint64_t {
      return copies.contains(neuron) ? uint64_t{1} << (gpu_ + 1) : 0;
    };
  }
  std::vector<uint32_t> homes(uint32_t edition) const {
    return {homes_[edition].begin(), homes_[edition].end()};
  }
  std::vector<uint32_t> assigned(uint32_t site, const Neurons& neurons, bool prompt = false) {
    tierd_set_view set{};
    set.size = sizeof set;
    set.site = site;
    set.n = static_cast<uint32_t>(neurons.size());
    set.idx = neurons.data();
    set.prompt = prompt ? 1 : 0;
    std::vector<uint8_t> unit(neurons.size(), 99);
    EXPECT_EQ(table.assign(self, &set, unit.data()), TIERD_OK);
    return {unit.begin(), unit.end()};
  }
  // Returns which neurons of which edition get which memory as home.
  std::string rebalanced() {
    wishes.clear();
    EXPECT_EQ(table.rebalance(self, 0), TIERD_OK);
    std::string text;
    for (const Wish& wish : wishes) {
      text += std::to_string(wish.edition) + " to " + std::to_string(wish.memory) + ":";
      for (const uint32_t neuron : *wish.neurons) {
        text += " " + std::to_string(neuron);
        homes_[wish.edition][neuron] = static_cast<uint8_t>(wish.memory - 1);
      }
      text += ";";
    }
    return text;
  }

  std::set<uint32_t> copies;  // on the GPU

 private:
  static TestMachine machine(uint32_t dimms) {
    TestMachine machine;
    for (uint32_t d = 0; d < dimms; ++d) machine.memories.push_back({"ndp"});
    machine.memories.push_back({"gpu"});
    return machine;
  }
  const uint32_t gpu_;
  std::vector<std::vector<uint8_t>> homes_;  // [editions]
};

TEST(HotCold, RowsAreTheGpusAndNetworksTheDimms) {
  HotCold balancer({{3, 64}, network(4)});
  EXPECT_THAT(balancer.homes(0), ElementsAre(2, 2, 2));
  EXPECT_THAT(balancer.homes(1), ElementsAre(0, 1, 0, 1));
  HotCold partitioned({network(4)}, {{"site 0.home", {1, 1, 0, 1}}});
  EXPECT_THAT(partitioned.homes(0), ElementsAre(1, 1, 0, 1));
  HotCold drawn({network(100)}, {}, {{"start", std::string("random"), "test"}});
  const auto homes = drawn.homes(0);
  EXPECT_NEAR(static_cast<double>(std::count(homes.begin(), homes.end(), 0u)), 50, 25);
}

TEST(HotCold, WhoHasACopyComputesIt) {
  HotCold balancer({{3, 64}, network(4)});
  balancer.copies = {1, 2};
  EXPECT_THAT(balancer.assigned(1, {0, 1, 2, 3}), ElementsAre(0, 2, 2, 1));
  EXPECT_THAT(balancer.assigned(0, {0, 1, 2}), ElementsAre(2, 2, 2));
  EXPECT_THAT(balancer.assigned(1, {0, 3}, true), ElementsAre(2, 2)) << "prompts are the GPU's";
  EXPECT_EQ(balancer.metrics["hot share"], 0.5);
  HotCold all({network(4)}, {}, {{"prompts_hot", false, "test"}});
  EXPECT_THAT(all.assigned(0, {0, 3}, true), ElementsAre(0, 1));
}

// Algorithm 1 with a loop condition that balances.
TEST(HotCold, TheHeavierOfAPairGivesItsMostActiveNeurons) {
  HotCold balancer({network(8)}, {{"site 0.home", {0, 0, 0, 0, 1, 1, 1, 1}}});
  for (int pass = 0; pass < 4; ++pass) (void)balancer.assigned(0, {0, 1, 2, 4});
  EXPECT_EQ(balancer.rebalanced(), "") << "the window has five";
  (void)balancer.assigned(0, {1, 2, 4});
  // Z = 14 against 5: moving neuron 1 (5) makes it 9 against 10.
  EXPECT_EQ(balancer.rebalanced(), "0 to 2: 1;");
  EXPECT_DOUBLE_EQ(balancer.metrics["planned imbalance before"], 14 / 9.5);
  EXPECT_DOUBLE_EQ(balancer.metrics["planned imbalance after"], 10 / 9.5);
  EXPECT_EQ(balancer.rebalanced(), "") << "a new window has begun";
  for (int pass = 0; pass < 5; ++pass) (void)balancer.assigned(0, {0, 1, 2, 4});
  EXPECT_EQ(balancer.rebalanced(), "") << "10 against 10";
}

TEST(HotCold, TheHeaviestIsPairedWithTheLightest) {
  HotCold balancer({network(8)}, {{"site 0.home", {0, 0, 0, 0, 1, 1, 2, 3}}}, {}, 4);
  for (int pass = 0; pass < 5; ++pass) (void)balancer.assigned(0, {0, 1, 2, 3, 4, 5});
  const std::string moves = balancer.rebalanced();
  EXPECT_THAT(moves, HasSubstr("0 to 3: 0 1;")) << "20 against 0";
  EXPECT_THAT(moves, HasSubstr("0 to 4: 4;")) << "10 against 0";
}

// For any firing, no pair is reversed, and the greatest load never grows.
TEST(HotCold, RemappingNeverMakesItWorse) {
  Random random(5);
  for (int trial = 0; trial < 50; ++trial) {
    const uint32_t dimms = 2 + random.below(7);
    HotCold balancer({network(64)}, {}, {{"start", std::string("random"), "test"}}, dimms);
    for (int window = 0; window < 4; ++window) {
      for (int pass = 0; pass < 5; ++pass) {
        Neurons active;
        for (uint32_t i = 0; i < 64; ++i) {
          if (random.below(64) > i) active.push_back(i);
        }
        (void)balancer.assigned(0, active);
      }
      (void)balancer.rebalanced();
    }
    EXPECT_LE(balancer.metrics["planned imbalance after"], balancer.metrics["planned imbalance before"]);
  }
}

TEST(HotCold, WithoutAWindowNothingMoves) {
  HotCold balancer({network(4)}, {{"site 0.home", {0, 0, 0, 1}}}, {{"window", int64_t{0}, "test"}});
  for (int pass = 0; pass < 9; ++pass) (void)balancer.assigned(0, {0, 1, 2});
  EXPECT_EQ(balancer.rebalanced(), "");
}

}  // namespace
}  // namespace tierd
