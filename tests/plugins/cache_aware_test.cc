// Predictor top-k with a cache-aware mask: compares its reads with all possible sets, and checks what it
// requests from its host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "tests/plugins/table.h"
#include "tierd/policy/cache_aware.hpp"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSubsetOf;
using Predictor = Plugged<tierd_predictor_1>;
using Flags = std::vector<uint8_t>;

// Returns the cost of reading these channels: each run is one read, which may pass over resident channels.
double cost_of(const Flags& read, const Flags& resident, double request) {
  double cost = 0, passed = 0;
  bool reading = false;
  for (size_t i = 0; i < read.size(); ++i) {
    if (resident[i] != 0) {
      ++passed;
      continue;
    }
    // Ending a read before resident channels and beginning another one behind may be cheaper.
    if (read[i] != 0) cost += 1 + (reading ? std::min(passed, request) : request);
    reading = read[i] != 0;
    passed = 0;
  }
  return cost;
}

double energy_of(const std::vector<float>& x, const Flags& used) {
  double energy = 0;
  for (size_t i = 0; i < x.size(); ++i) energy += used[i] != 0 ? 0 : double{x[i] * x[i]};
  return energy;
}

struct Case {
  std::vector<float> magnitudes;
  Flags resident;
  double request, most;
};
Case draw_case(Random& random, uint32_t n) {
  Case drawn;
  double energy = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const float magnitude = random.below(6) == 0 ? 0.0F : std::abs(random.symmetric());
    drawn.magnitudes.push_back(magnitude);
    drawn.resident.push_back(random.below(3) == 0 ? 1 : 0);
    energy += double{magnitude} * magnitude;
  }
  drawn.request = random.below(5);
  drawn.most = energy * random.below(100) / 100;
  return drawn;
}

// No set that loses at most as much is cheaper: the price adds cost and loss to one sum, and the chosen set
// has the least sum of all sets.
TEST(CacheAware, NoSetIsBetterAtItsPrice) {
  Random random(3);
  CacheAware mask;
  double price = 0;
  for (int round = 0; round < 400; ++round) {
    const uint32_t n = 1 + random.below(11);
    const Case drawn = draw_case(random, n);
    Flags used(n);
    if (random.below(4) == 0) price = 0;
    const double lost = mask.choose(drawn.magnitudes.data(), n, drawn.request, drawn.resident.data(),
                                    drawn.most, price, used.data());
    EXPECT_NEAR(lost, energy_of(drawn.magnitudes, used), 1e-6);
    EXPECT_LE(lost, drawn.most + 1e-9);
    Flags read(n);
    for (uint32_t i = 0; i < n; ++i) {
      const bool must = drawn.resident[i] != 0 && drawn.magnitudes[i] > 0;
      const bool may = drawn.magnitudes[i] > 0;
      EXPECT_TRUE((used[i] != 0 || !must) && (used[i] == 0 || may)) << i;
      read[i] = drawn.resident[i] == 0 ? used[i] : 0;
    }
    Flags nothing(n);
    for (uint32_t i = 0; i < n; ++i) nothing[i] = drawn.resident[i] != 0 && drawn.magnitudes[i] > 0 ? 1 : 0;
    if (energy_of(drawn.magnitudes, nothing) <= drawn.most || drawn.most == 0) continue;
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t bits = 0; bits < 1u << n; ++bits) {
      Flags set(n), all = nothing;
      bool missing = true;
      for (uint32_t i = 0; i < n; ++i) {
        set[i] = bits >> i & 1;
        missing &= set[i] == 0 || drawn.resident[i] == 0;
        all[i] = all[i] != 0 || set[i] != 0 ? 1 : 0;
      }
      if (!missing) continue;
      const double sum =
          cost_of(set, drawn.resident, drawn.request) + price * energy_of(drawn.magnitudes, all);
      least = std::min(least, sum);
    }
    // Zeros that a read passes over are not used, but are paid for.
    double cheapest = std::numeric_limits<double>::infinity();
    for (uint32_t bits = 0; bits < 1u << n; ++bits) {
      Flags passed = read;
      bool zeros = true;
      for (uint32_t i = 0; i < n; ++i) {
        if ((bits >> i & 1) == 0) continue;
        zeros &= drawn.magnitudes[i] == 0 && drawn.resident[i] == 0;
        passed[i] = 1;
      }
      if (zeros) cheapest = std::min(cheapest, cost_of(passed, drawn.resident, drawn.request));
    }
    EXPECT_NEAR(cheapest + price * lost, least, 1e-6 * least) << round;
  }
}

// An isolated strong channel is worth less than weaker ones that are neighbours.
TEST(CacheAware, RunsAreReadAndLonelyChannelsLeftOut) {
  const std::vector<float> x = {0, 0, 3, 2, 2.5F, 3, 0, 0, 0, 0, 0, 0, 3.1F, 0, 0, 0};
  const Flags resident(x.size());
  Flags used(x.size());
  double price = 0;
  CacheAware mask;
  const double most = 3.1F * 3.1F + 0.1;
  EXPECT_LE(mask.choose(x.data(), 16, 4, resident.data(), most, price, used.data()), most);
  EXPECT_THAT(used, ElementsAre(0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(CacheAware, EndsWhateverTheInputsAre) {
  const float infinite = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  CacheAware mask;
  for (const std::vector<float>& x : {std::vector<float>{infinite, 1, 2, 3},
                                      {nan, 1, 2, 3},
                                      {1e-30F, 1e-30F, 1e-30F, 1e-38F},
                                      {0, 0, 0, 0}}) {
    const Flags resident = {0, 0, 1, 0};
    for (const double most : {0.0, 1.0, 1e-70, double{nan}}) {
      Flags used(4);
      double price = 0;
      (void)mask.choose(x.data(), 4, 8, resident.data(), most, price, used.data());
      EXPECT_THAT(used, testing::Each(testing::Le(1)));
    }
  }
}

// ---- the plugin

constexpr uint32_t kStreamChannels = 40;

std::vector<TestSite> grouped_operators() {
  std::vector<TestSite> sites = {{4, 64}};
  for (uint16_t op = 0; op < 2; ++op) {
    TestSite site{kStreamChannels, 64, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL, kStreamChannels};
    site.op_group = op;
    sites.push_back(site);
  }
  return sites;
}

std::vector<uint32_t> predicted_channels(Predictor& predictor, uint32_t site, const std::vector<float>& x) {
  const auto rows = static_cast<uint32_t>(x.size() / kStreamChannels);
  const std::vector<uint64_t> sequences(rows, 0);
  const tierd_rows_view view{sizeof view, rows, kStreamChannels, x.data(), sequences.data()};
  std::vector<uint32_t> channels(kStreamChannels);
  std::vector<uint64_t> masks(kStreamChannels, ~uint64_t{0});
  tierd_set_out out{sizeof out, kStreamChannels, 0, 0, channels.data(), nullptr, nullptr, 0};
  if (rows > 1) out.row_mask = masks.data();
  EXPECT_EQ(predictor.table.predict(predictor.self, site, &view, &out), TIERD_OK);
  channels.resize(out.n);
  return channels;
}

void look_ahead(Predictor& predictor, uint32_t site, const std::vector<float>& x) {
  const uint64_t sequence = 0;
  const tierd_rows_view view{sizeof view, 1, kStreamChannels, x.data(), &sequence};
  predictor.wishes.clear();
  EXPECT_EQ(predictor.table.look_ahead(predictor.self, site, &view), TIERD_OK);
}

std::vector<float> drawn_inputs(Random& random, uint32_t rows = 1) {
  std::vector<float> x(uint64_t{rows} * kStreamChannels);
  for (float& value : x) value = random.symmetric();
  return x;
}

class CacheAwareMask : public testing::Test {
 protected:
  static constexpr uint32_t kKept = 12;  // the first channels of each operator are resident
  explicit CacheAwareMask(double ahead = 0, uint64_t gap = 256)
      : predictor_("predictor", "top-k", grouped_operators(),
                   {{"sparsity", 0.5, "test"},
                    {"mask", std::string("cache-aware"), "test"},
                    {"ahead", std::string("none"), "test"},
                    {"missing_ahead", ahead, "test"}},
                   {}, {}, 1, {{{"dram", 0, 0, true, 0, gap}}}) {
    predictor_.resident = [](uint32_t, uint32_t channel) { return channel < kKept; };
  }
  Predictor predictor_;
  Random random_{5};
};

TEST_F(CacheAwareMask, UsesWhatIsResidentAndLosesNoMoreThanTheLargest) {
  for (int round = 0; round < 20; ++round) {
    const std::vector<float> x = drawn_inputs(random_);
    const std::vector<uint32_t> used = predicted_channels(predictor_, 1, x);
    for (uint32_t channel = 0; channel < kKept; ++channel) EXPECT_EQ(used[channel], channel);
    EXPECT_TRUE(std::is_sorted(used.begin(), used.end()));
  }
  EXPECT_LE(predictor_.metrics["energy_lost"], predictor_.metrics["energy_lost_by_largest"]);
  EXPECT_GT(predictor_.metrics["energy_lost"], 0.2 * predictor_.metrics["energy_lost_by_largest"]);
}

TEST_F(CacheAwareMask, SeveralRowsUseWhatIsResidentAndTheLargestInputsOfEach) {
  std::vector<float> x = drawn_inputs(random_, 2);
  x[3] = x[kStreamChannels + 3] = 0;
  Predictor largest("predictor", "top-k", grouped_operators(), {{"sparsity", 0.5, "test"}});
  std::vector<uint32_t> expected = predicted_channels(largest, 1, x);
  for (uint32_t channel = 0; channel < kKept; ++channel) {
    if (channel != 3 && std::ranges::count(expected, channel) == 0) expected.push_back(channel);
  }
  std::ranges::sort(expected);
  EXPECT_EQ(predicted_channels(predictor_, 1, x), expected);
}

TEST_F(CacheAwareMask, ReadsNothingAheadUnlessAsked) {
  const std::vector<float> x = drawn_inputs(random_);
  (void)predicted_channels(predictor_, 2, x);
  look_ahead(predictor_, 1, x);
  EXPECT_THAT(predictor_.wishes, IsEmpty());
}

class MissingAhead : public CacheAwareMask {
 protected:
  MissingAhead() : CacheAwareMask(0.5) {}
};

// The predictor prefetches half as many channels as the next operator read in its last pass, also across the
// end of a token. It uses prefetched channels even if their inputs are the smallest.
TEST_F(MissingAhead, TheFirstMissingChannelsAreReadAndUsed) {
  std::vector<float> x = drawn_inputs(random_);
  look_ahead(predictor_, 2, x);
  EXPECT_THAT(predictor_.wishes, IsEmpty());  // nothing was read yet
  const auto read = static_cast<uint32_t>(predicted_channels(predictor_, 1, x).size()) - kKept;
  ASSERT_GE(read, 2u);
  look_ahead(predictor_, 2, x);
  ASSERT_EQ(predictor_.wishes.size(), 1u);
  EXPECT_EQ(predictor_.wishes[0].site, 1u);
  EXPECT_EQ(predictor_.wishes[0].distance, 2u);
  std::vector<uint32_t> first(read / 2);
  for (uint32_t i = 0; i < first.size(); ++i) first[i] = kKept + i;
  EXPECT_EQ(predictor_.wishes[0].neurons, first);
  for (const uint32_t channel : first) x[channel] = 1e-3F;
  EXPECT_THAT(first, IsSubsetOf(predicted_channels(predictor_, 1, x)));
  // The prefetch was for one pass.
  for (const uint32_t channel : first) x[channel] = 0;
  EXPECT_THAT(predicted_channels(predictor_, 1, x), testing::Not(testing::Contains(first[0])));
}

}  // namespace
}  // namespace tierd
