// M2Cache: the edition of each neuron, and the memory that follows the last token. Compared with sorted lists
// and sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/base/random.h"
#include "tests/plugins/table.h"

namespace tierd {
namespace {

using Quantizer = Plugged<tierd_levels_1>;
using Cache = Plugged<tierd_cache_1>;
using Set = std::set<uint32_t>;
constexpr uint32_t kNetworkNeurons = 100;

// Attention, and a network in three editions: 1, then 2 and 3.
std::vector<TestSite> sites() {
  TestSite network{kNetworkNeurons, 16, false, TIERD_NO_SITE, TIERD_AXIS_NEURON};
  network.lower = {8, 4};
  return {{10, 100}, network};
}
constexpr uint32_t kNetwork = 1;
constexpr uint32_t kBest = 1, kMiddle = 2, kLeast = 3;  // editions

std::vector<Setting> ratios(const std::string& text) {
  return {{"ratios", text, "test"}};
}

std::vector<uint8_t> choose_levels(Quantizer& mixed, const std::vector<float>& scores, bool told = true,
                                   std::vector<uint32_t> neurons = {}, uint8_t kind = TIERD_SET_PREDICTED) {
  if (neurons.empty()) {
    neurons.resize(scores.size());
    std::iota(neurons.begin(), neurons.end(), 0u);
  }
  tierd_set_view set = set_of(kNetwork, neurons);
  set.kind = kind;
  if (told) set.score = scores.data();
  std::vector<uint8_t> level(scores.size() + 1, 99);
  EXPECT_EQ(mixed.table.choose(mixed.self, &set, level.data()), TIERD_OK);
  EXPECT_EQ(level.back(), 99);
  level.pop_back();
  return level;
}

// Returns levels by a stable sort by score, cut at the rounded sums of the shares.
std::vector<uint8_t> sorted_levels(const std::vector<float>& scores, const std::vector<double>& shares) {
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  std::vector<uint8_t> level(scores.size(), static_cast<uint8_t>(shares.size() - 1));
  double share = 0;
  size_t at = 0;
  for (size_t l = 0; l + 1 < shares.size(); ++l) {
    share += shares[l];
    const auto end = static_cast<size_t>(std::lround(share * static_cast<double>(scores.size())));
    for (; at < end; ++at) level[order[at]] = static_cast<uint8_t>(l);
  }
  return level;
}

TEST(QuantizerMixed, TheBetterRankTheMoreBits) {
  Random random(3);
  const std::vector<std::pair<std::string, std::vector<double>>> all = {
      {"25/25/50", {.25, .25, .5}},           {"0/50/50", {0, .5, .5}},    {"50/0/50", {.5, 0, .5}},
      {"33.3/33.3/33.4", {.333, .333, .334}}, {"1/98/1", {.01, .98, .01}}, {"50/50/0", {.5, .5, 0}}};
  for (const auto& [text, shares] : all) {
    Quantizer mixed("quantizer", "mixed", sites(), ratios(text));
    EXPECT_EQ(mixed.table.caps(mixed.self), uint32_t{TIERD_LEVELS_NEEDS_SCORES});
    for (const uint32_t n : {0u, 1u, 2u, 3u, 7u, 64u, 99u}) {
      std::vector<float> scores(n);
      for (float& score : scores)
        score = static_cast<float>(std::lround(random.symmetric() * 20));  // many are equal
      EXPECT_EQ(choose_levels(mixed, scores), sorted_levels(scores, shares)) << text << " of " << n;
    }
    const std::vector<float> edge = {-0.0F,
                                     0.0F,
                                     -1e30F,
                                     1e-45F,
                                     -1e-45F,
                                     std::numeric_limits<float>::max(),
                                     std::numeric_limits<float>::lowest()};
    EXPECT_EQ(choose_levels(mixed, edge), sorted_levels(edge, shares)) << text;
  }
}

// Tokens whose scores follow those of the token before, compared with sorted lists. A neuron keeps its level
// while its rank is within the margin of that level.
TEST(QuantizerMixed, NeuronsNearABorderKeepTheirEdition) {
  Random random(11);
  const std::vector<double> shares = {.25, .25, .5};
  for (const double margin : {0.1, 0.3, 1.0}) {
    std::vector<Setting> settings = ratios("25/25/50");
    settings.push_back({"margin", margin, "test"});
    Quantizer mixed("quantizer", "mixed", sites(), settings);
    std::map<uint32_t, uint8_t> before;
    std::vector<float> scores(kNetworkNeurons);
    uint32_t moved = 0;
    for (uint32_t token = 0; token < 40; ++token) {
      for (float& score : scores) score = 0.8F * score + 0.3F * random.symmetric();
      std::vector<uint32_t> active(kNetworkNeurons);
      std::iota(active.begin(), active.end(), 0u);
      std::stable_sort(active.begin(), active.end(),
                       [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
      active.resize(30 + random.below(20));
      const std::vector<uint32_t> order = active;
      const auto n = static_cast<double>(order.size());
      std::map<uint32_t, uint8_t> expected;
      std::vector<size_t> left;
      double share = 0;
      for (size_t l = 0, begin = 0; l < 3; ++l) {
        share += shares[l];
        const auto end = static_cast<size_t>(std::lround(share * n));
        left.push_back(end - begin);
        begin = end;
      }
      const auto near = std::lround(margin * n);
      for (size_t l = 0, begin = 0; l < 3; ++l) {
        const size_t end = begin + left[l];
        for (size_t rank = 0; rank < order.size(); ++rank) {
          const auto known = before.find(order[rank]);
          const bool is_near = static_cast<long>(rank) >= static_cast<long>(begin) - near &&
                               static_cast<long>(rank) < static_cast<long>(end) + near;
          if (known == before.end() || known->second != l || !is_near || left[l] == 0) continue;
          expected[order[rank]] = static_cast<uint8_t>(l);
          --left[l];
        }
        begin = end;
      }
      for (const uint32_t neuron : order) {
        uint8_t l = 0;
        if (expected.count(neuron) != 0) continue;
        while (left[l] == 0) ++l;
        expected[neuron] = l;
        --left[l];
      }
      std::sort(active.begin(), active.end());
      std::vector<float> of_active;
      for (const uint32_t neuron : active) of_active.push_back(scores[neuron]);
      const std::vector<uint8_t> level = choose_levels(mixed, of_active, true, active);
      const std::vector<uint8_t> by_rank = sorted_levels(of_active, shares);
      for (size_t i = 0; i < active.size(); ++i) {
        EXPECT_EQ(level[i], expected[active[i]]) << "token " << token << ", neuron " << active[i];
        moved += level[i] != by_rank[i] ? 1 : 0;
      }
      before = expected;
    }
    EXPECT_GT(moved, 20u) << "it is of consequence";
  }
}

// A predicted set gets the pass's answer and leaves no state.
TEST(QuantizerMixed, AForeseenSetChangesNoAnswer) {
  std::vector<Setting> settings = ratios("25/25/50");
  settings.push_back({"margin", 0.3, "test"});
  Quantizer one("quantizer", "mixed", sites(), settings), other("quantizer", "mixed", sites(), settings);
  Random random(5);
  std::vector<uint32_t> active(40);
  std::iota(active.begin(), active.end(), 3u);
  uint32_t differ = 0;
  std::vector<float> scores(active.size());
  for (uint32_t token = 0; token < 20; ++token) {
    for (float& score : scores) score = 0.8F * score + 0.3F * random.symmetric();
    std::vector<float> guessed = scores;
    for (float& score : guessed) score += 0.2F * random.symmetric();
    const std::vector<uint8_t> foreseen = choose_levels(one, guessed, true, active, TIERD_SET_FORESEEN);
    EXPECT_EQ(choose_levels(one, scores, true, active, TIERD_SET_FORESEEN),
              choose_levels(other, scores, true, active));
    const std::vector<uint8_t> used = choose_levels(one, scores, true, active);
    EXPECT_EQ(one.metrics, other.metrics);
    differ += used != foreseen ? 1 : 0;
  }
  EXPECT_GT(differ, 10u) << "it is of consequence";
}

TEST(QuantizerMixed, OneEditionForAllNeedsNoScores) {
  const std::map<std::string, uint8_t> all = {{"100/0/0", 0}, {"0/100/0", 1}, {"0/0/100", 2}};
  for (const auto& [text, level] : all) {
    Quantizer mixed("quantizer", "mixed", sites(), ratios(text));
    EXPECT_EQ(mixed.table.caps(mixed.self), 0u);
    EXPECT_EQ(choose_levels(mixed, std::vector<float>(5), false), std::vector<uint8_t>(5, level));
    EXPECT_EQ(mixed.metrics["share." + std::to_string(level)], 1);
  }
  // A predictor gives no scores for a site that it uses whole, so all neurons get the best edition.
  Quantizer mixed("quantizer", "mixed", sites(), ratios("25/25/50"));
  EXPECT_EQ(choose_levels(mixed, std::vector<float>(5), false), std::vector<uint8_t>(5, 0));
}

// The kernel's calls for one network's memory, one edition after the other.
class EditionsMemory {
 public:
  explicit EditionsMemory(uint32_t slots)
      : cache_("cache", "atu", sites()), slots_{{kBest, slots}, {kMiddle, slots}, {kLeast, 2 * slots}} {
    cache_.evictable = [this](uint32_t edition, uint32_t neuron) {
      return resident[edition].count(neuron) != 0 && pinned_[edition].count(neuron) == 0 ? 1 : 0;
    };
  }
  // Runs one token whose neurons have these editions. Returns the number of neurons fetched.
  size_t pass(const std::map<uint32_t, Set>& active, uint32_t rows = 1) {
    size_t fetched = 0;
    pinned_.clear();
    for (const auto& [edition, neurons] : active) {
      for (const uint32_t neuron : neurons) {
        if (resident[edition].count(neuron) != 0) pinned_[edition].insert(neuron);
      }
    }
    for (const auto& [edition, neurons] : active) fetched += fetch(edition, neurons);
    pinned_.clear();
    for (uint32_t edition = kBest; edition <= kLeast; ++edition) {
      const auto of = active.find(edition);
      const std::vector<uint32_t> used = of == active.end()
                                             ? std::vector<uint32_t>()
                                             : std::vector<uint32_t>(of->second.begin(), of->second.end());
      tierd_set_view view = set_of(cache_, edition, used);
      view.rows = rows;
      EXPECT_EQ(cache_.table.touch(cache_.self, &view), TIERD_OK);
      std::vector<tierd_neuron> room(kNetworkNeurons);
      tierd_victims_out out{kNetworkNeurons, 0, room.data()};
      EXPECT_EQ(cache_.table.expire(cache_.self, edition, &out), TIERD_OK);
      std::vector<uint32_t> leaving;
      for (uint32_t i = 0; i < out.n; ++i) leaving.push_back(room[i].neuron);
      leave(edition, leaving);
    }
    return fetched;
  }

  std::map<uint32_t, Set> resident;

 private:
  size_t fetch(uint32_t edition, const Set& neurons) {
    std::vector<uint32_t> missing;
    for (const uint32_t neuron : neurons) {
      if (resident[edition].count(neuron) == 0) missing.push_back(neuron);
    }
    const auto free = slots_[edition] - static_cast<uint32_t>(resident[edition].size());
    const Admitted answer = admit(cache_, edition, missing, free);
    leave(edition, answer.victims);
    std::vector<uint32_t> kept;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (answer.verdicts[i] == TIERD_VERDICT_KEEP) kept.push_back(missing[i]);
    }
    resident[edition].insert(kept.begin(), kept.end());
    EXPECT_LE(resident[edition].size(), slots_[edition]);
    cache_.table.landed(cache_.self, edition, kept.data(), static_cast<uint32_t>(kept.size()));
    return missing.size();
  }
  void leave(uint32_t edition, const std::vector<uint32_t>& victims) {
    for (const uint32_t neuron : victims) {
      EXPECT_EQ(pinned_[edition].count(neuron), 0u);
      EXPECT_EQ(resident[edition].erase(neuron), 1u);
    }
    cache_.table.dropped(cache_.self, edition, victims.data(), static_cast<uint32_t>(victims.size()),
                         TIERD_DROPPED_EVICTED);
  }

  Cache cache_;
  std::map<uint32_t, uint32_t> slots_;
  std::map<uint32_t, Set> pinned_;
};

std::map<uint32_t, Set> draw_token(Random& random, uint32_t of_edition) {
  std::vector<uint32_t> all(kNetworkNeurons);
  std::iota(all.begin(), all.end(), 0u);
  for (uint32_t i = 0; i < kNetworkNeurons; ++i)
    std::swap(all[i], all[i + random.below(kNetworkNeurons - i)]);
  std::map<uint32_t, Set> token;
  uint32_t at = 0;
  for (const uint32_t edition : {kBest, kMiddle, kLeast}) {
    for (uint32_t i = 0; i < (edition == kLeast ? 2 : 1) * of_edition; ++i) token[edition].insert(all[at++]);
  }
  return token;
}

TEST(CacheAtu, HoldsExactlyTheLastTokensNeurons) {
  Random random(11);
  EditionsMemory network(8);
  std::map<uint32_t, Set> before;
  for (uint32_t token = 0; token < 200; ++token) {
    const std::map<uint32_t, Set> active = draw_token(random, 8);
    size_t difference = 0;
    for (const auto& [edition, neurons] : active) {
      for (const uint32_t neuron : neurons) difference += before[edition].count(neuron) == 0 ? 1 : 0;
    }
    EXPECT_EQ(network.pass(active), difference);
    EXPECT_EQ(network.resident, active);
    before = active;
  }
}

TEST(CacheAtu, WhatDoesNotFitPassesThrough) {
  Random random(12);
  EditionsMemory network(5);
  for (uint32_t token = 0; token < 100; ++token) {
    const std::map<uint32_t, Set> active = draw_token(random, 8);
    network.pass(active);
    for (const auto& [edition, neurons] : active) {
      EXPECT_EQ(network.resident[edition].size(), edition == kLeast ? 10u : 5u);
      EXPECT_TRUE(std::ranges::includes(neurons, network.resident[edition]));
    }
  }
}

TEST(CacheAtu, ANeuronThatRanksOtherwiseChangesItsEdition) {
  EditionsMemory network(8);
  EXPECT_EQ(network.pass({{kBest, {1, 2}}, {kLeast, {3, 4}}}), 4u);
  EXPECT_EQ(network.pass({{kBest, {1, 3}}, {kLeast, {2, 4}}}), 2u);
  EXPECT_EQ(network.resident, (std::map<uint32_t, Set>{{kBest, {1, 3}}, {kLeast, {2, 4}}}));
}

// The split follows the tokens' use of each edition.
TEST(CacheAtu, EditionsHaveRoomAsTheyNeed) {
  Cache cache("cache", "atu", sites());
  const uint64_t whole = 10 * 100;
  const uint64_t bytes = whole + 20 * 16 + 20 * 8 + 40 * 4;
  const auto share = [&] {
    std::vector<uint32_t> slots = {10, kNetworkNeurons, kNetworkNeurons, kNetworkNeurons};
    EXPECT_EQ(cache.table.share(cache.self, bytes, slots.data()), TIERD_OK);
    EXPECT_LE(uint64_t{slots[0]} * 100 + slots[1] * 16 + slots[2] * 8 + slots[3] * 4, bytes);
    return slots;
  };
  std::vector<uint32_t> slots = share();
  EXPECT_EQ(slots[0], 10u);
  EXPECT_NEAR(slots[1], slots[3], 1);  // nothing is known yet
  uint32_t wanted = 0;
  EXPECT_EQ(cache.table.resplit(cache.self, &wanted), TIERD_OK);
  EXPECT_EQ(wanted, 0u);
  std::vector<uint32_t> neurons(40);
  std::iota(neurons.begin(), neurons.end(), 0u);
  for (const auto& [edition, n] : std::map<uint32_t, uint32_t>{{kBest, 10}, {kMiddle, 10}, {kLeast, 20}}) {
    (void)admit(cache, edition, neurons, 0);  // more than the slots
    const std::vector<uint32_t> used(neurons.begin(), neurons.begin() + n);
    const tierd_set_view view = set_of(cache, edition, used);
    EXPECT_EQ(cache.table.touch(cache.self, &view), TIERD_OK);
  }
  EXPECT_EQ(cache.table.resplit(cache.self, &wanted), TIERD_OK);
  EXPECT_EQ(wanted, 1u);
  slots = share();
  EXPECT_EQ(slots, (std::vector<uint32_t>{10, 20, 20, 40}));
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(cache.table.resplit(cache.self, &wanted), TIERD_OK);
    EXPECT_EQ(wanted, 0u);
  }
}

}  // namespace
}  // namespace tierd
