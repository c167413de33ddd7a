#include "tools/lab/plan/mixture_cost.h"

#include <gtest/gtest.h>

#include "tests/base/steady_disk.h"

namespace tierd {
namespace {

// Four layers of eight experts, two of which are used, with figures that can be computed by hand. Reading an
// expert takes 1 ms.
MixtureModel four_layers() {
  return {.layers = 4,
          .experts = 8,
          .used = 2,
          .expert_bytes = 1'000'000,
          .shared_bytes = 2'000'000,
          .fixed_bytes = 500'000,
          .memory_rate = 10e9,
          .flash = steady_disk(0, 1e9)};
}

TEST(MixtureCost, ReadsTheChosenExpertsThatMemoryHasNot) {
  const auto cost = mixture_cost(four_layers(), 500'000 + 2'000'000 + 8'000'000);
  ASSERT_TRUE(cost.has_value());
  EXPECT_DOUBLE_EQ(cost->kept, 0.25);
  EXPECT_DOUBLE_EQ(cost->hits, 0.25);
  EXPECT_DOUBLE_EQ(cost->reads, 6);
  EXPECT_DOUBLE_EQ(cost->flash_bytes, 6e6);
  EXPECT_EQ(cost->streamed_bytes, 0);
  EXPECT_NEAR(cost->disk, 6e-3, 1e-4);
  EXPECT_DOUBLE_EQ(cost->compute, 10e6 / 10e9);
  EXPECT_DOUBLE_EQ(cost->token, cost->disk + 2e6 / 10e9);
}

TEST(MixtureCost, TakesTheHitsThatAreKnown) {
  MixtureModel model = four_layers();
  model.hits = 0.75;
  const auto cost = mixture_cost(model, 10'500'000);
  EXPECT_DOUBLE_EQ(cost->kept, 0.25);
  EXPECT_DOUBLE_EQ(cost->reads, 2);
}

TEST(MixtureCost, EachLayerWaitsForAFirstRead) {
  MixtureModel model = four_layers();
  const auto before = mixture_cost(model, 10'500'000);
  model.first_read = 1e-3;
  EXPECT_NEAR(mixture_cost(model, 10'500'000)->disk, before->disk + 4e-3, 1e-12);
  EXPECT_EQ(mixture_cost(model, 100'000'000)->disk, 0) << "nothing is read where all is in memory";
}

TEST(MixtureCost, WhatEveryTokenUsesIsReadInOrderWhereItDoesNotFit) {
  const auto cost = mixture_cost(four_layers(), 500'000 + 1'500'000);
  EXPECT_EQ(cost->kept, 0);
  EXPECT_DOUBLE_EQ(cost->streamed_bytes, 500'000);
  EXPECT_DOUBLE_EQ(cost->flash_bytes, 8.5e6);
  EXPECT_FALSE(mixture_cost(four_layers(), 499'999).has_value());
}

}  // namespace
}  // namespace tierd
