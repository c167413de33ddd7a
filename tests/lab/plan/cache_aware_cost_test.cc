// Compares the cost of a cache-aware mask with tests/bench/channel_reads and with measurements.
#include "tools/lab/plan/cache_aware_cost.h"

#include <gtest/gtest.h>

namespace tierd {
namespace {

// LLaMA-2-7B in q4_0, and a disk of 9.5 µs a request and 3.8 GB/s.
CostModel llama() {
  return {.layers = 32,
          .operators = {{"qkv", 4096, 6912, false},
                        {"o", 4096, 2304, false},
                        {"up", 4096, 12384, false},
                        {"down", 11008, 2304, false}},
          .head_bytes = 74'000'000,
          .memory_rate = 80e9,
          .flash = ReadCurve::of_requests(9.5e-6, 3.8e9, 3.8e9),
          .joins_reads = true};
}

double bytes_of(const CostModel& model) {
  return model.layer_bytes() * model.layers;
}

TEST(CacheAwareCost, IsWhatTheBenchComputes) {
  const CostModel model = llama();
  const CacheAwareCost half = cache_aware_cost(model, {0.37 * bytes_of(model), 0.5, true});
  EXPECT_NEAR(half.disk, 0.422, 0.01);
  EXPECT_NEAR(half.flash_bytes, 1.201e9, 0.03e9);
  EXPECT_NEAR(half.reads, 11100, 300);
  EXPECT_NEAR(half.lost_of_largest, 0.039, 0.002);
  const CacheAwareCost quarter = cache_aware_cost(model, {0.14 * bytes_of(model), 0.7, true});
  EXPECT_NEAR(quarter.disk, 0.418, 0.01);
  EXPECT_NEAR(quarter.lost_of_largest, 0.126, 0.004);
}

// 38 MB too little for the head: they are read while the head is computed, and no channel stays.
TEST(CacheAwareCost, WhatDoesNotFitOfTheHeadIsReadAnew) {
  const CostModel model = llama();
  const CacheAwareCost none = cache_aware_cost(model, {0, 0.7, true});
  const CacheAwareCost less = cache_aware_cost(model, {-38e6, 0.7, true});
  EXPECT_EQ(less.kept, 0);
  EXPECT_NEAR(less.flash_bytes, none.flash_bytes + 38e6, 1);
  EXPECT_NEAR(less.disk, none.disk + 0.01, 1e-6);
  EXPECT_NEAR(less.steady_token, none.steady_token + 0.01 - 74e6 / 80e9, 1e-6);
}

// Mixtral-8x7B: a token uses two of eight experts; attention is kept first.
TEST(CacheAwareCost, ATokenPassesSomeExperts) {
  CostModel model = llama();
  model.operators = {{"qkv", 4096, 3456, false}, {"o", 4096, 2304, false}};
  const double attention = bytes_of(model);
  model.operators.push_back({.name = "expert-up", .channels = 4096, .channel_bytes = 16128, .copies = 8});
  model.operators.push_back({.name = "expert-down", .channels = 14336, .channel_bytes = 2304, .copies = 8});
  const double experts = bytes_of(model) - attention;
  for (ChannelOperator& of : model.operators) of.passed = of.copies > 1 ? 2 : 1;
  const CacheAwareCost none = cache_aware_cost(model, {attention, 0.8, true});
  EXPECT_EQ(none.kept, 1);
  EXPECT_EQ(none.kept_of_experts, 0);
  EXPECT_LT(none.flash_bytes, experts / 4);
  const CacheAwareCost tenth = cache_aware_cost(model, {attention + 0.1 * experts, 0.8, true});
  EXPECT_NEAR(tenth.kept_of_experts, 0.1, 1e-9);
  EXPECT_LT(tenth.flash_bytes, none.flash_bytes);
  const CacheAwareCost half = cache_aware_cost(model, {0.5 * attention, 0.8, true});
  EXPECT_NEAR(half.kept, 0.5, 1e-9);
  EXPECT_EQ(half.kept_of_experts, 0);
  for (ChannelOperator& of : model.operators) of.passed = 1;
  const CacheAwareCost one = cache_aware_cost(model, {attention, 0.8, true});
  EXPECT_NEAR(one.flash_bytes, none.flash_bytes / 2, 1);
}

TEST(CacheAwareCost, EachOperatorWaitsForAFirstRead) {
  CostModel model = llama();
  const CacheAwareCost before = cache_aware_cost(model, {0.37 * bytes_of(model), 0.5, true});
  model.first_read = 1e-4;
  const CacheAwareCost after = cache_aware_cost(model, {0.37 * bytes_of(model), 0.5, true});
  EXPECT_NEAR(after.disk, before.disk + 128 * 1e-4, 1e-9);
  EXPECT_EQ(cache_aware_cost(model, {bytes_of(model), 0.5, true}).disk, 0);
}

// Prefetches hide the time of the predictor and the kernel while reads are in flight.
TEST(CacheAwareCost, TheDiskWaitsForTheChoiceUnlessItReadsAhead) {
  CostModel model = llama();
  const CacheAwareCost alone = cache_aware_cost(model, {0.37 * bytes_of(model), 0.5, true, 0});
  const CacheAwareCost ahead = cache_aware_cost(model, {0.37 * bytes_of(model), 0.5, true, 0.5});
  const double head = 74e6 / 80e9;
  EXPECT_EQ(alone.disk, ahead.disk);
  EXPECT_NEAR(alone.choosing, 32 * (23296 * 40e-9) + alone.flash_bytes / 4500 * 90e-9, 0.01);
  EXPECT_NEAR(alone.steady_token, alone.disk + alone.choosing + head, 1e-9);
  EXPECT_NEAR(ahead.steady_token, ahead.disk + head, 1e-9);
  model.choose_seconds = 1e-6;
  const CacheAwareCost slow = cache_aware_cost(model, {0.37 * bytes_of(model), 0.5, true, 0.5});
  EXPECT_GT(slow.steady_token, 0.5 * slow.disk + slow.choosing);
}

TEST(CacheAwareCost, LosesNoMoreThanTheLargestAndReadsLessInOrder) {
  const CostModel model = llama();
  for (const double kept : {0.0, 0.1, 0.4, 0.8}) {
    for (const double sparsity : {0.3, 0.5, 0.7}) {
      const CacheAwareCost ordered = cache_aware_cost(model, {kept * bytes_of(model), sparsity, true});
      const CacheAwareCost any = cache_aware_cost(model, {kept * bytes_of(model), sparsity, false});
      EXPECT_DOUBLE_EQ(ordered.kept, kept);
      EXPECT_LE(ordered.lost, ordered.lost_of_largest);
      EXPECT_LE(any.lost, any.lost_of_largest);
      EXPECT_LE(ordered.disk, 1.01 * any.disk) << kept << " " << sparsity;
    }
  }
}

TEST(CacheAwareCost, WithEverythingResidentNothingIsReadOrLost) {
  CostModel model = llama();
  model.choose_seconds = 0;
  const CacheAwareCost cost = cache_aware_cost(model, {2 * bytes_of(model), 0.5, true});
  EXPECT_EQ(cost.kept, 1);
  EXPECT_EQ(cost.flash_bytes, 0);
  EXPECT_EQ(cost.lost, 0);
  EXPECT_DOUBLE_EQ(cost.steady_token, (bytes_of(model) + 74e6) / 80e9);
}

// Known rates replace those of a text. Channels that are always among the largest serve as well as the whole
// operator.
TEST(CacheAwareCost, TakesTheRatesThatAreKnown) {
  CostModel model = llama();
  for (ChannelOperator& of : model.operators) {
    of.rates.assign(of.channels, 0.0F);
    std::fill_n(of.rates.begin(), of.channels / 2, 1.0F);
  }
  const CacheAwareCost cost = cache_aware_cost(model, {0.5 * bytes_of(model), 0.5, false});
  EXPECT_LT(cost.flash_bytes, 0.01 * bytes_of(model));
  EXPECT_LT(cost.lost_of_largest, 0.001);
}

}  // namespace
}  // namespace tierd
