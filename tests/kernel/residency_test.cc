#include "core/kernel/residency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/random.h"
#include "core/kernel/active_set.h"
#include "core/kernel/supply/staging.h"

namespace tierd {
namespace {

std::vector<Edition> two_editions_of_4() {
  std::vector<Edition> all(2);
  all[0].n = all[1].n = 4;
  return all;
}

TEST(Residency, ANeuronsLife) {
  Residency residency(two_editions_of_4(), std::vector<uint32_t>{2, 4});
  EXPECT_EQ(residency.slot(0, 3), kNoSlot);
  EXPECT_EQ(residency.lease(0, 3), 0u);
  EXPECT_TRUE(residency.leased(0, 3));
  EXPECT_FALSE(residency.valid(0, 3));
  residency.landed(0, 3);
  EXPECT_TRUE(residency.valid(0, 3));
  EXPECT_EQ(residency.valid_count(0), 1u);
  EXPECT_EQ(residency.lease(0, 0), 1u);
  EXPECT_EQ(residency.free_slots(0), 0u);
  residency.abandon(0, 0);
  EXPECT_EQ(residency.free_slots(0), 1u);
  residency.pin(0, 3);
  residency.pin(0, 3);
  residency.unpin(0, 3);
  EXPECT_TRUE(residency.pinned(0, 3));
  residency.unpin(0, 3);
  EXPECT_FALSE(residency.pinned(0, 3));
  residency.evict(0, 3);
  EXPECT_EQ(residency.free_slots(0), 2u);
  EXPECT_EQ(residency.valid_count(0), 0u);
}

TEST(Residency, PinsWhatIsHereAndNamesTheRest) {
  Residency residency(two_editions_of_4(), std::vector<uint32_t>{2, 4});
  for (const uint32_t i : {0u, 1u, 3u}) residency.lease(1, i);
  residency.landed(1, std::vector<uint32_t>{0, 3});  // 1 is in flight
  std::vector<uint32_t> here{9};
  std::vector<uint32_t> absent{8};
  residency.pin_valid(1, ActiveSet::all(4), here, absent);
  EXPECT_EQ(here, (std::vector<uint32_t>{9, 0, 3}));
  EXPECT_EQ(absent, (std::vector<uint32_t>{8, 1, 2}));
  here.clear();
  residency.pin_valid(1, ActiveSet::of({1, 3}), here, absent);
  EXPECT_EQ(here, (std::vector<uint32_t>{3}));
  EXPECT_EQ(absent, (std::vector<uint32_t>{8, 1, 2, 1}));
  residency.unpin(1, std::vector<uint32_t>{0, 3});
  EXPECT_TRUE(residency.evictable(1, 0));
  EXPECT_FALSE(residency.evictable(1, 3));  // pinned twice
  EXPECT_FALSE(residency.evictable(1, 1));
}

TEST(Residency, SlotsAreNeverSharedAndNeverLost) {
  Residency residency(two_editions_of_4(), std::vector<uint32_t>{3, 2});
  Random random(5);
  for (int round = 0; round < 5000; ++round) {
    const EditionId e = random.below(2);
    const uint32_t i = random.below(4);
    if (residency.leased(e, i)) {
      random.below(2) == 0 ? residency.landed(e, i) : residency.abandon(e, i);
    } else if (residency.valid(e, i)) {
      residency.evict(e, i);
    } else if (residency.free_slots(e) > 0) {
      residency.lease(e, i);
    }
    std::set<uint32_t> taken;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t slot = residency.slot(e, k);
      if (slot == kNoSlot) continue;
      EXPECT_LT(slot, residency.max_slots(e));
      EXPECT_TRUE(taken.insert(slot).second);
    }
    EXPECT_EQ(taken.size() + residency.free_slots(e), residency.max_slots(e));
  }
}

// A plain twin: a neuron that stays keeps its slot; one that has lost its slot takes the lowest free one.
struct NaiveEdition {
  std::vector<std::optional<uint32_t>> holder;  // [slots], the neuron

  void resize(uint32_t slots) {
    std::vector<uint32_t> homeless;
    for (size_t slot = slots; slot < holder.size(); ++slot) {
      if (holder[slot]) homeless.push_back(*holder[slot]);
    }
    holder.resize(slots);
    for (const uint32_t neuron : homeless) *std::find(holder.begin(), holder.end(), std::nullopt) = neuron;
  }
};

TEST(Residency, AnotherSizeMovesOnlyWhatLiesBehindTheEnd) {
  constexpr uint32_t kN = 40;
  std::vector<Edition> all(1);
  all[0].n = kN;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    NaiveEdition naive{std::vector<std::optional<uint32_t>>(random.below(kN + 1))};
    Residency residency(all, std::vector<uint32_t>{static_cast<uint32_t>(naive.holder.size())});
    for (int round = 0; round < 50; ++round) {
      for (int i = 0; i < 30; ++i) {
        const uint32_t neuron = random.below(kN);
        if (residency.valid(0, neuron)) {
          naive.holder[residency.slot(0, neuron)].reset();
          residency.evict(0, neuron);
        } else if (residency.free_slots(0) > 0 && random.below(3) != 0) {
          const uint32_t slot = residency.lease(0, neuron);
          EXPECT_FALSE(naive.holder[slot].has_value());
          naive.holder[slot] = neuron;
          residency.landed(0, neuron);
        }
      }
      const uint32_t valid = residency.valid_count(0);
      const uint32_t slots = valid + random.below(kN - valid + 1);
      const std::vector<std::optional<uint32_t>> before = naive.holder;
      const std::vector<Residency::Move> moves = residency.resize(0, slots);
      naive.resize(slots);
      // The moves, applied to the bytes in order, give the new contents.
      std::vector<std::optional<uint32_t>> bytes = before;
      bytes.resize(std::max<size_t>(before.size(), slots));
      for (const auto& [neuron, from, to] : moves) {
        EXPECT_GE(from, slots);
        EXPECT_EQ(bytes[from], neuron);
        bytes[to] = bytes[from];
      }
      for (uint32_t slot = 0; slot < slots; ++slot) {
        if (naive.holder[slot]) {
          EXPECT_EQ(residency.slot(0, *naive.holder[slot]), slot);
          EXPECT_EQ(bytes[slot], naive.holder[slot]);
        }
      }
      EXPECT_EQ(residency.max_slots(0), slots);
      EXPECT_EQ(residency.valid_count(0), valid);
      EXPECT_EQ(residency.free_slots(0), slots - valid);
      if (slots == valid) continue;
      // As at the start, the lowest free slot is leased first.
      const auto lowest = std::find(naive.holder.begin(), naive.holder.end(), std::nullopt);
      uint32_t absent = 0;
      while (residency.valid(0, absent)) ++absent;
      EXPECT_EQ(residency.lease(0, absent), static_cast<uint32_t>(lowest - naive.holder.begin()));
      residency.abandon(0, absent);
    }
  }
}

TEST(Residency, AnArenaBeginsEveryEditionWherePagesDo) {
  std::vector<Edition> all = two_editions_of_4();
  all[0].slot_bytes = 192;
  all[1].slot_bytes = 1u << 20;
  EXPECT_EQ(arena_offsets(all, std::vector<uint32_t>{3, 2}),
            (std::vector<uint64_t>{0, 4096, 4096 + (2u << 20)}));
  EXPECT_EQ(arena_offsets(all, std::vector<uint32_t>{3, 4}), (std::vector<uint64_t>{0, 2u << 20, 6u << 20}));
  EXPECT_EQ(arena_offsets(all, std::vector<uint32_t>{0, 0}), (std::vector<uint64_t>{0, 0, 0}));
}

TEST(ResidencyDeathTest, WrongOrdersAreBrokenInvariants) {
  Residency residency(two_editions_of_4(), std::vector<uint32_t>{1, 0});
  EXPECT_DEATH(residency.landed(0, 0), "leased");
  EXPECT_DEATH(residency.evict(0, 0), "valid");
  EXPECT_DEATH(residency.lease(1, 0), "free.empty");
  residency.lease(0, 0);
  EXPECT_DEATH(residency.lease(0, 0), "absent");
  EXPECT_DEATH(residency.pin(0, 0), "valid");
  residency.landed(0, 0);
  EXPECT_DEATH(residency.abandon(0, 0), "leased");
  EXPECT_DEATH(residency.unpin(0, 0), "pins");
  residency.pin(0, 0);
  EXPECT_DEATH(residency.evict(0, 0), "pins");
  EXPECT_DEATH((void)residency.resize(0, 1), "pins");
  EXPECT_DEATH((void)residency.resize(0, 0), "valid");
}

TEST(Staging, LeasesEachBlockOnce) {
  Staging staging(3, 4096);
  EXPECT_EQ(staging.block_bytes(), 4096u);
  std::set<uint32_t> blocks;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(blocks.insert(staging.lease()).second);
  EXPECT_EQ(*blocks.rbegin(), 2u);
  EXPECT_EQ(staging.free_blocks(), 0u);
  EXPECT_DEATH((void)staging.lease(), "free_.empty");
  staging.give_back(1);
  EXPECT_EQ(staging.lease(), 1u);
}

TEST(ActiveSet, ListedOrAll) {
  const ActiveSet all = ActiveSet::all(3);
  EXPECT_TRUE(all.is_all());
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2], 2u);
  EXPECT_TRUE(all.contains(2));
  EXPECT_FALSE(all.contains(3));
  EXPECT_EQ(all.indices(), nullptr);
  const ActiveSet some = ActiveSet::of({1, 5});
  EXPECT_FALSE(some.is_all());
  EXPECT_EQ(some.size(), 2u);
  EXPECT_EQ(some[1], 5u);
  EXPECT_TRUE(some.contains(5));
  EXPECT_FALSE(some.contains(0));
  EXPECT_EQ(some.indices()[0], 1u);
  EXPECT_EQ(ActiveSet::of({}).size(), 0u);
  EXPECT_FALSE(ActiveSet::of({}).contains(0));
}

}  // namespace
}  // namespace tierd
