// Compares the window of the last k tokens with unions of sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>

#include "core/base/random.h"
#include "tests/plugins/table.h"

namespace tierd {
namespace {

using Cache = Plugged<tierd_cache_1>;
using Set = std::set<uint32_t>;
constexpr uint8_t kNeuronAxis = TIERD_AXIS_NEURON;
constexpr uint32_t kNeurons = 200;
// Attention, a network, and a head whose edition the embedding shares.
const std::vector<TestSite> kModelSites = {
    {6, 100, true, 3}, {10, 100}, {kNeurons, 10, false, TIERD_NO_SITE, kNeuronAxis}, {6, 100}};
// Edition numbers.
constexpr uint32_t kAttentionEdition = 0, kNetworkEdition = 1, kHeadEdition = 2;

// A network's memory as the kernel manages it.
class Network {
 public:
  Network(Cache& of, uint32_t number, uint32_t room) : cache(of), edition(number), slots(room) {}
  // Runs one token. Returns the neurons read for it.
  Set pass(const Set& active) { return rows({active}); }
  // Runs a token and guesses, one set each.
  Set rows(const std::vector<Set>& sets) {
    Set active;
    for (const Set& row : sets) active.insert(row.begin(), row.end());
    Set missing, streamed;
    pinned.clear();
    for (const uint32_t neuron : active) (resident.count(neuron) != 0 ? pinned : missing).insert(neuron);
    const std::vector<uint32_t> asked(missing.begin(), missing.end());
    const Admitted answer = admit(cache, edition, asked, slots - static_cast<uint32_t>(resident.size()));
    leave(answer.victims);
    std::vector<uint32_t> kept;
    for (size_t i = 0; i < asked.size(); ++i) {
      if (answer.verdicts[i] == TIERD_VERDICT_KEEP) kept.push_back(asked[i]);
    }
    resident.insert(kept.begin(), kept.end());
    EXPECT_LE(resident.size(), slots);
    most = std::max(most, resident.size());
    cache.table.landed(cache.self, edition, kept.data(), static_cast<uint32_t>(kept.size()));
    pinned.clear();
    const std::vector<uint32_t> used(active.begin(), active.end());
    std::vector<uint64_t> masks;
    for (const uint32_t neuron : used) {
      uint64_t& mask = masks.emplace_back(0);
      for (size_t r = 0; r < sets.size(); ++r) mask |= uint64_t{sets[r].count(neuron)} << r;
    }
    tierd_set_view view = set_of(cache, edition, used);
    view.rows = static_cast<uint32_t>(sets.size());
    if (sets.size() > 1) view.row_mask = masks.data();
    cache.table.touch(cache.self, &view);
    expire();
    return missing;
  }
  // A neuron arrives that no pass asked for.
  void arrive(uint32_t neuron) {
    resident.insert(neuron);
    cache.table.landed(cache.self, edition, &neuron, 1);
  }
  void expire() {
    std::vector<tierd_neuron> room(kNeurons);
    tierd_victims_out out{kNeurons, 0, room.data()};
    EXPECT_EQ(cache.table.expire(cache.self, edition, &out), TIERD_OK);
    std::vector<uint32_t> leaving;
    for (uint32_t i = 0; i < out.n; ++i) leaving.push_back(room[i].neuron);
    leave(leaving);
  }
  void leave(const std::vector<uint32_t>& victims) {
    for (const uint32_t neuron : victims) EXPECT_EQ(resident.erase(neuron), 1u);
    if (victims.empty()) return;
    cache.table.dropped(cache.self, edition, victims.data(), static_cast<uint32_t>(victims.size()),
                        TIERD_DROPPED_EVICTED);
  }

  bool evictable(uint32_t neuron) const { return resident.count(neuron) != 0 && pinned.count(neuron) == 0; }

  Cache& cache;
  uint32_t edition;
  uint32_t slots;
  Set resident, pinned;
  size_t most = 0;
};

// A single network.
struct Memory {
  Memory(int64_t k, uint32_t room, bool unused = false)
      : cache("cache", "residency-window", kModelSites, {integer("k", k), {"unused", unused, "test"}}),
        network(cache, kNetworkEdition, room) {
    cache.evictable = [this](uint32_t, uint32_t neuron) { return network.evictable(neuron) ? 1 : 0; };
  }
  Set pass(const Set& active) { return network.pass(active); }

  Cache cache;
  Network network;
};

// Several networks that share one memory and need different room.
class Networks {
 public:
  Networks(std::vector<double> active, uint32_t room)
      : share_(std::move(active)),
        cache_("cache", "residency-window",
               std::vector<TestSite>(share_.size(), {kNeurons, 10, false, TIERD_NO_SITE, kNeuronAxis}),
               {integer("k", 4)}),
        bytes_(room * 10) {
    std::vector<uint32_t> slots(share_.size(), kNeurons);
    EXPECT_EQ(cache_.table.share(cache_.self, bytes_, slots.data()), TIERD_OK);
    for (uint32_t e = 0; e < share_.size(); ++e) networks_.emplace_back(cache_, e, slots[e]);
    cache_.evictable = [this](uint32_t e, uint32_t neuron) { return networks_[e].evictable(neuron) ? 1 : 0; };
  }
  // Runs a token. Returns the number of neurons read.
  size_t step() {
    size_t read = 0;
    for (uint32_t e = 0; e < share_.size(); ++e) {
      Set active;
      for (uint32_t i = 0; i < kNeurons; ++i) {
        if (random_.uniform() < share_[e]) active.insert(i);
      }
      read += networks_[e].pass(active).size();
    }
    uint32_t wanted = 2;
    EXPECT_EQ(cache_.table.resplit(cache_.self, &wanted), TIERD_OK);
    EXPECT_LE(wanted, 1u);
    if (wanted == 1) resize();
    return read;
  }
  size_t steps(int n) {
    size_t read = 0;
    for (int i = 0; i < n; ++i) read += step();
    return read;
  }
  std::vector<uint32_t> slots() const {
    std::vector<uint32_t> all;
    for (const Network& network : networks_) all.push_back(network.slots);
    return all;
  }
  uint32_t splits = 0;

 private:
  void resize() {
    ++splits;
    std::vector<uint32_t> slots(share_.size(), kNeurons);
    std::vector<tierd_neuron> room(share_.size() * kNeurons);
    tierd_victims_out out{static_cast<uint32_t>(room.size()), 0, room.data()};
    ASSERT_EQ(cache_.table.resize(cache_.self, bytes_, slots.data(), &out), TIERD_OK);
    for (uint32_t e = 0; e < share_.size(); ++e) {
      std::vector<uint32_t> victims;
      for (uint32_t i = 0; i < out.n; ++i) {
        if (room[i].edition == e) victims.push_back(room[i].neuron);
      }
      networks_[e].leave(victims);
      networks_[e].slots = slots[e];
      EXPECT_LE(networks_[e].resident.size(), slots[e]);
    }
    EXPECT_LE(std::accumulate(slots.begin(), slots.end(), uint64_t{0}) * 10, bytes_);
  }

  std::vector<double> share_;
  Cache cache_;
  uint64_t bytes_;
  std::vector<Network> networks_;
  Random random_{5};
};

Set draw_active(Random& random) {
  Set active;
  for (uint32_t i = 0; i < kNeurons; ++i) {
    // Some neurons fire often.
    if (random.uniform() < (i < 20 ? 0.6 : 0.08)) active.insert(i);
  }
  return active;
}

TEST(ResidencyWindow, KeepsTheUnionOfTheLastTokensAndReadsWhatIsNewToIt) {
  for (const int64_t k : {1, 2, 3, 5}) {
    Memory memory(k, kNeurons);
    Random random(static_cast<uint64_t>(k));
    std::deque<Set> window;
    for (int token = 0; token < 60; ++token) {
      Set held;
      for (const Set& set : window) held.insert(set.begin(), set.end());
      ASSERT_EQ(memory.network.resident, held) << "k " << k << " token " << token;
      const Set active = draw_active(random);
      Set fresh;
      std::set_difference(active.begin(), active.end(), held.begin(), held.end(),
                          std::inserter(fresh, fresh.end()));
      ASSERT_EQ(memory.pass(active), fresh) << "k " << k << " token " << token;
      window.push_back(active);
      if (window.size() > static_cast<size_t>(k)) window.pop_front();
    }
    EXPECT_DOUBLE_EQ(memory.cache.metrics["k"], static_cast<double>(k));
  }
}

TEST(ResidencyWindow, ShrinksByItselfWhereRoomIsShort) {
  Random random(9);
  std::vector<Set> tokens;
  for (int token = 0; token < 60; ++token) tokens.push_back(draw_active(random));
  uint64_t read_before = UINT64_MAX;
  double k_before = 0;
  for (const uint32_t slots : {20u, 50u, 80u, kNeurons}) {
    Memory memory(4, slots);
    uint64_t read = 0;
    for (const Set& active : tokens) read += memory.pass(active).size();
    EXPECT_LE(memory.network.most, slots);
    EXPECT_LT(read, read_before);
    EXPECT_GT(memory.cache.metrics["k"], k_before);
    read_before = read;
    k_before = memory.cache.metrics["k"];
  }
  EXPECT_EQ(k_before, 4);
}

TEST(ResidencyWindow, TheOldestMakeRoomFirst) {
  Memory memory(4, 6);
  memory.pass({0, 1});
  memory.pass({2, 3});
  memory.pass({0, 4});
  EXPECT_EQ(memory.network.resident, (Set{0, 1, 2, 3, 4}));
  memory.pass({5, 6});  // one slot is free: 1 was used longest ago, 0 again since
  EXPECT_EQ(memory.network.resident, (Set{0, 2, 3, 4, 5, 6}));
  // More neurons than slots: the others are streamed, and none in use is evicted.
  memory.pass({0, 10, 11, 12, 13, 14, 15, 16});
  EXPECT_EQ(memory.network.resident.size(), 6u);
  EXPECT_EQ(memory.network.resident.count(0), 1u);
}

TEST(ResidencyWindow, WhatIsUsedWholeStaysFirst) {
  Cache cache("cache", "residency-window", kModelSites);
  const auto share = [&](uint64_t bytes) {
    std::vector<uint32_t> slots = {10, kNeurons, 6};
    EXPECT_EQ(cache.table.share(cache.self, bytes, slots.data()), TIERD_OK);
    return slots;
  };
  EXPECT_EQ(share(800), (std::vector<uint32_t>{5, 0, 3}));
  EXPECT_EQ(share(1600), (std::vector<uint32_t>{10, 0, 6}));
  EXPECT_EQ(share(2000), (std::vector<uint32_t>{10, 40, 6}));
  ASSERT_EQ(cache.table.fill(cache.self), TIERD_OK);
  ASSERT_EQ(cache.wishes.size(), 2u);
  EXPECT_EQ(cache.wishes[0].edition, kAttentionEdition);
  EXPECT_EQ(cache.wishes[0].neurons->size(), 10u);
  EXPECT_EQ(cache.wishes[1].edition, kHeadEdition);
  EXPECT_EQ(share(1 << 20), (std::vector<uint32_t>{10, kNeurons, 6}));
  Cache bounded("cache", "residency-window", kModelSites, {{"most", 0.25, "test"}});
  std::vector<uint32_t> slots = {10, kNeurons, 6};
  EXPECT_EQ(bounded.table.share(bounded.self, 1 << 20, slots.data()), TIERD_OK);
  EXPECT_EQ(slots[kNetworkEdition], kNeurons / 4);
}

TEST(ResidencyWindow, WhoCannotLeaveNowStaysAndLeavesLater) {
  Memory memory(1, kNeurons);
  memory.pass({7});
  const auto evictable = memory.cache.evictable;
  memory.cache.evictable = [](uint32_t, uint32_t) { return 0; };
  memory.pass({8});
  EXPECT_EQ(memory.network.resident, (Set{7, 8}));
  memory.cache.evictable = evictable;
  memory.pass({9});
  EXPECT_EQ(memory.network.resident, (Set{9}));
}

// Speculation: the window ends at the last accepted token, whatever was guessed after it.
TEST(ResidencyWindow, GuessesThatWereWrongLeaveNoTrace) {
  constexpr int64_t kWindow = 3;
  Random random(11);
  Memory memory(kWindow, kNeurons);
  std::deque<Set> window;
  for (int step = 0; step < 60; ++step) {
    std::vector<Set> rows;
    for (uint32_t r = 0; r < 1 + random.below(5); ++r) rows.push_back(draw_active(random));
    const uint32_t kept = 1 + random.below(static_cast<uint32_t>(rows.size()));
    memory.network.rows(rows);
    if (rows.size() > 1) {
      for (const Set& row : rows) {
        for (const uint32_t neuron : row)
          ASSERT_EQ(memory.network.resident.count(neuron), 1u) << "nobody leaves yet";
      }
      memory.cache.table.rows_kept(memory.cache.self, static_cast<uint32_t>(rows.size()), kept);
      memory.network.expire();
    }
    for (uint32_t r = 0; r < kept; ++r) {
      window.push_back(rows[r]);
      if (window.size() > kWindow) window.pop_front();
    }
    Set held;
    for (const Set& set : window) held.insert(set.begin(), set.end());
    ASSERT_EQ(memory.network.resident, held) << "step " << step;
  }
}

TEST(ResidencyWindow, NetworksShareByWhatTheirWindowsNeed) {
  Networks networks({0.05, 0.1, 0.1, 0.2}, 280);  // unions of 5: 0.23, 0.41, 0.41, 0.67 of 200: 344 in all
  EXPECT_EQ(networks.slots(), (std::vector<uint32_t>{70, 70, 70, 70}));
  networks.steps(7);
  EXPECT_EQ(networks.splits, 0u);
  networks.step();
  EXPECT_EQ(networks.splits, 1u);
  networks.steps(92);
  const std::vector<uint32_t> slots = networks.slots();
  EXPECT_NEAR(slots[0], 280 * 45 / 344., 4);
  EXPECT_NEAR(slots[1], 280 * 82 / 344., 4);
  EXPECT_NEAR(slots[2], 280 * 82 / 344., 4);
  EXPECT_NEAR(slots[3], 280 * 135 / 344., 4);
  EXPECT_LE(networks.splits, 8u) << "what fits stays as it is";
}

TEST(ResidencyWindow, NobodyIsMovedWhereThereIsRoomOrAllNeedTheSame) {
  Networks roomy({0.05, 0.2}, 2 * kNeurons);
  roomy.steps(40);
  EXPECT_EQ(roomy.splits, 0u);
  Networks alike({0.1, 0.1, 0.1, 0.1}, 240);
  alike.steps(100);
  EXPECT_LE(alike.splits, 8u) << "small sets vary";
}

// A prompt processed at once uses many more neurons than a token.
TEST(ResidencyWindow, ATextThatGoesByAtOnceTellsNothingOfTheNeed) {
  Memory memory(1, 50);
  std::vector<uint32_t> slots = {10, kNeurons, 6};
  ASSERT_EQ(memory.cache.table.share(memory.cache.self, 1600 + 500, slots.data()), TIERD_OK);
  Set half;
  for (uint32_t i = 0; i < 100; ++i) half.insert(i);
  for (int step = 0; step < 20; ++step) {
    memory.network.rows({half, half});
    uint32_t wanted = 0;
    ASSERT_EQ(memory.cache.table.resplit(memory.cache.self, &wanted), TIERD_OK);
    EXPECT_EQ(wanted, 0u);
  }
}

TEST(ResidencyWindow, WhatCameUnusedLeavesAtOnceOrLikeTheRest) {
  for (const bool unused : {false, true}) {
    Memory memory(2, kNeurons, unused);
    memory.network.arrive(50);
    memory.pass({1});
    EXPECT_EQ(memory.network.resident, unused ? Set({1, 50}) : Set({1}));
    memory.pass({2});
    EXPECT_EQ(memory.network.resident, unused ? Set({1, 2, 50}) : Set({1, 2}));
    memory.pass({3});
    EXPECT_EQ(memory.network.resident, (Set{2, 3}));
    memory.network.arrive(60);
    memory.pass({4, 60});
    memory.pass({5});
    EXPECT_EQ(memory.network.resident, (Set{4, 5, 60}));
  }
}

// Rows of several texts, of which none was reported as accepted, count as one token.
TEST(ResidencyWindow, ABatchOfTextsIsOneToken) {
  Memory memory(1, kNeurons);
  memory.network.rows({{1, 2}, {2, 3}});
  memory.network.rows({{4}, {5}});
  EXPECT_EQ(memory.network.resident, (Set{1, 2, 3, 4, 5})) << "the second is not decided yet";
  memory.pass({6});
  EXPECT_EQ(memory.network.resident, (Set{6}));
}

}  // namespace
}  // namespace tierd
