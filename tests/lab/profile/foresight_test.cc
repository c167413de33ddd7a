#include "tools/lab/profile/foresight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "core/kernel/active_set.h"
#include "core/model/layout/cut.h"

namespace tierd {
namespace {

constexpr uint32_t kChannels = 50;

SiteTable layers(uint16_t n) {
  SiteTable sites;
  sites.all.resize(n);
  for (uint16_t layer = 0; layer < n; ++layer) {
    sites[layer].label = kCutNumber<Columns>;
    sites[layer].layer = layer;
    sites[layer].n = sites[layer].n_in = kChannels;
  }
  return sites;
}

void see(Foresight& foresight, SiteId site, const std::vector<float>& x) {
  const ActiveSet all = ActiveSet::all(kChannels);
  std::vector<float> gives(x.size());
  std::ranges::transform(x, gives.begin(), [](float value) { return std::abs(value); });
  foresight.measured(site, {all, static_cast<uint32_t>(x.size() / kChannels), x.data(), gives.data()});
}

std::vector<float> draw(Random& random, uint32_t rows) {
  std::vector<float> x(rows * kChannels);
  for (float& value : x) value = random.symmetric();
  return x;
}

// Computes plainly which share of the largest channels of one layer is among those of the other.
double plain_precision(const std::vector<float>& a, const std::vector<float>& b, uint32_t level) {
  const uint32_t kept = kChannels - (level + 1) * kChannels / 10;
  uint64_t both = 0, used = 0;
  for (size_t row = 0; row < a.size(); row += kChannels) {
    const auto is_used = [&](const std::vector<float>& x, uint32_t i) {
      return std::count_if(x.begin() + static_cast<long>(row), x.begin() + static_cast<long>(row + kChannels),
                           [&](float value) { return std::abs(value) > std::abs(x[row + i]); }) < kept;
    };
    for (uint32_t i = 0; i < kChannels; ++i) {
      used += is_used(a, i) ? 1 : 0;
      both += is_used(a, i) && is_used(b, i) ? 1 : 0;
    }
  }
  return static_cast<double>(both) / static_cast<double>(used);
}

// Experts are not compared, because the next layer's router chooses others; their loss is measured.
TEST(Foresight, ComparesNoExperts) {
  Random random(3);
  SiteTable sites = layers(2);
  for (SiteId s = 0; s < sites.size(); ++s) sites[s].expert = 0;
  Foresight foresight(sites, 1);
  for (SiteId layer = 0; layer < 2; ++layer) see(foresight, layer, draw(random, 4));
  EXPECT_EQ(foresight.precision(0, 1, 4), 0);
  EXPECT_GT(foresight.lost(0, 50), 0);
}

TEST(Foresight, IsWhatPlainCountingFinds) {
  Random random(1);
  const SiteTable sites = layers(3);
  Foresight foresight(sites, 2);
  const std::vector<float> first = draw(random, 4);
  std::vector<float> second = first, third = draw(random, 4);
  for (float& value : second) value += 0.3F * random.symmetric();
  see(foresight, 0, first);
  see(foresight, 1, second);
  see(foresight, 2, third);
  for (uint32_t level = 0; level < Foresight::kLevels; ++level) {
    EXPECT_NEAR(foresight.precision(0, 1, level), plain_precision(first, second, level), 1e-6) << level;
    EXPECT_NEAR(foresight.precision(0, 2, level), plain_precision(first, third, level), 1e-6) << level;
    EXPECT_NEAR(foresight.precision(1, 1, level), plain_precision(second, third, level), 1e-6) << level;
  }
  EXPECT_GT(foresight.similarity(0, 1), 0.9F);
  EXPECT_LT(std::abs(foresight.similarity(0, 2)), 0.5F);
  EXPECT_EQ(foresight.precision(2, 1, 4), 0) << "nothing follows it";
}

// Layers of the next step are not compared with those of this one.
TEST(Foresight, KeepsStepsApart) {
  Random random(2);
  const SiteTable sites = layers(2);
  Foresight foresight(sites, 1);
  const std::vector<float> x = draw(random, 1), y = draw(random, 1);
  for (const auto& step : {x, y}) {
    see(foresight, 0, step);
    see(foresight, 1, step);
  }
  EXPECT_NEAR(foresight.similarity(0, 1), 1, 1e-6);
  EXPECT_EQ(foresight.precision(0, 1, 8), 1);
}

TEST(Foresight, WhatIsZeroIsNeverUsed) {
  const SiteTable sites = layers(2);
  Foresight foresight(sites, 1);
  std::vector<float> a(kChannels, 0.0F), b(kChannels, 0.0F);
  a[3] = a[4] = b[4] = b[5] = 1;
  see(foresight, 0, a);
  see(foresight, 1, b);
  EXPECT_EQ(foresight.precision(0, 1, 0), 0.5F);
}

TEST(Foresight, LostIsAShareOfTheSquares) {
  const SiteTable sites = layers(1);
  Foresight foresight(sites, 1);
  std::vector<float> x(kChannels, 1.0F);
  for (uint32_t i = 0; i < kChannels / 2; ++i) x[2 * i] = -3;
  see(foresight, 0, x);
  EXPECT_EQ(foresight.lost(0, 0), 0);
  EXPECT_NEAR(foresight.lost(0, 50), 0.1, 1e-6) << "the ones, beside the nines";
  EXPECT_NEAR(foresight.lost(0, 100), 1, 1e-6);
}

}  // namespace
}  // namespace tierd
