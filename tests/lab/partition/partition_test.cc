#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "tools/lab/partition/methods.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {
namespace {

constexpr double kEqual = 1e-6;  // tolerance of times that were added in another order, or by a solver

Result<PartitionResult> solve(const PartitionProblem& problem, PartitionMethod method = PartitionMethod::ilp,
                              uint64_t seed = 1) {
  PartitionOptions options;
  options.method = method;
  options.seed = seed;
  options.limit.seconds = 60;
  return make_partition(problem, options, [] {});
}

double seconds_of(const PartitionProblem& problem, PartitionMethod method, uint64_t seed = 1) {
  const auto result = solve(problem, method, seed);
  EXPECT_TRUE(result.ok()) << result.error().line();
  return result.ok() ? result->cost.seconds : 0;
}

// Returns a site with frequencies like a model's: few high, many near 0.
PartitionSite site(const std::string& name, uint64_t bytes, uint32_t neurons, Random& random) {
  PartitionSite made{name, bytes, {}};
  for (uint32_t i = 0; i < neurons; ++i)
    made.frequency.push_back(static_cast<float>(std::pow(random.uniform(), 4)));
  return made;
}

// Returns the least time of any partition by trying all, or infinity where none fits. Neurons are numbered
// across sites, and each has one of 2 x DIMMs states.
double least_of_all(const PartitionProblem& problem) {
  Partition partition;
  std::vector<std::pair<size_t, size_t>> neurons;
  for (size_t s = 0; s < problem.sites.size(); ++s) {
    const size_t n = problem.sites[s].frequency.size();
    partition.push_back({std::vector<uint32_t>(n, 0), std::vector<uint8_t>(n, 0)});
    for (size_t i = 0; i < n; ++i) neurons.emplace_back(s, i);
  }
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    const PartitionCost cost = cost_of(problem, partition);
    if (fits(problem, cost)) least = std::min(least, cost.seconds);
    size_t at = 0;
    for (; at < neurons.size(); ++at) {
      const auto [s, i] = neurons[at];
      if (partition[s].hot[i] ^= 1; partition[s].hot[i] != 0) break;
      if (++partition[s].home[i] < problem.machine.dimms) break;
      partition[s].home[i] = 0;
    }
    if (at == neurons.size()) return least;
  }
}

TEST(Partition, TheProgramFindsTheLeastOfTinyProblems) {
  Random random(5);
  int divisible = 0;
  for (int round = 0; round < 12; ++round) {
    PartitionProblem problem;
    const uint32_t dimms = 2 + random.below(2);
    problem.sites = {site("a", 100, dimms == 2 ? 5 : 3, random), site("b", 170, 3, random)};
    const uint64_t all = problem.all_bytes();
    // Room on the GPU for a few bytes up to all; DIMMs that are nearly full, and some that are too small.
    problem.machine = {
        random.below(static_cast<uint32_t>(all)), 1e9 * (1 + random.uniform()), dimms,
        all / dimms + random.below(120),          1e9 * random.uniform() + 1e8, 20e-9 * random.uniform()};
    const double least = least_of_all(problem);
    const auto result = solve(problem);
    if (std::isinf(least)) {
      ASSERT_FALSE(result.ok()) << round;
      EXPECT_EQ(result.code(), Code::no_space);
      continue;
    }
    ++divisible;
    ASSERT_TRUE(result.ok()) << result.error().line();
    EXPECT_TRUE(result->homes);
    EXPECT_TRUE(is_partition_of(problem, result->partition));
    EXPECT_NEAR(result->cost.seconds, least, least * kEqual) << round;
    EXPECT_LE(result->bound, least * (1 + kEqual));
    EXPECT_LE(result->gap(), 2 * kEqual);
  }
  EXPECT_GT(divisible, 6);
}

// The GPU is never the slowest here, which greedy ignores.
TEST(Partition, TheProgramIsBetterThanGreedyAndThatThanChance) {
  Random random(7);
  for (int round = 0; round < 6; ++round) {
    PartitionProblem problem;
    for (int s = 0; s < 4; ++s)
      problem.sites.push_back(
          site(std::to_string(s), 1024 * (1 + random.below(8)), 200 + random.below(300), random));
    const uint64_t all = problem.all_bytes();
    problem.machine = {all / 10, 1e15, 3 + random.below(6), all, 1e11, 0};
    const auto ilp = solve(problem);
    ASSERT_TRUE(ilp.ok()) << ilp.error().line();
    const double greedy = seconds_of(problem, PartitionMethod::greedy);
    EXPECT_LE(ilp->cost.seconds, greedy);
    EXPECT_EQ(ilp->greedy, greedy);
    for (const uint64_t seed : {1, 2, 3})
      EXPECT_LT(greedy, seconds_of(problem, PartitionMethod::random, seed));
    EXPECT_LE(ilp->bound, ilp->cost.seconds);
    EXPECT_LT(ilp->gap(), 0.01);
  }
}

// The GPU would be the slowest if it held all that fits. Greedy fills it all the same.
TEST(Partition, TheProgramLeavesAGpuThatIsSlowRoom) {
  Random random(9);
  PartitionProblem problem;
  for (int s = 0; s < 6; ++s) problem.sites.push_back(site(std::to_string(s), 4096, 2000, random));
  const uint64_t all = problem.all_bytes();
  problem.machine = {all / 2, 2e11, 8, all, 1e11, 2e-6};
  const auto ilp = solve(problem);
  ASSERT_TRUE(ilp.ok()) << ilp.error().line();
  ASSERT_TRUE(ilp->ilp && ilp->greedy);
  EXPECT_FALSE(ilp->homes);
  EXPECT_LT(*ilp->ilp, 0.9 * *ilp->greedy);
  EXPECT_EQ(ilp->cost.seconds, *ilp->ilp);
  EXPECT_LT(ilp->cost.gpu_bytes, problem.machine.gpu_bytes);
  EXPECT_LT(ilp->gap(), 1e-4);
}

TEST(Partition, WhatIsWrittenOfNeuronsIsNearTheBound) {
  Random random(11);
  for (const double sync : {0.0, 1e-6, 4e-6}) {
    PartitionProblem problem;
    for (int s = 0; s < 5; ++s)
      problem.sites.push_back(site(std::to_string(s), s % 2 == 0 ? 8192 : 3072, 1500 + 300 * s, random));
    const uint64_t all = problem.all_bytes();
    problem.machine = {all / 8, 936e9, 8, all / 8 + 100'000, 102.4e9, sync};
    const auto result = solve(problem);
    ASSERT_TRUE(result.ok()) << result.error().line();
    EXPECT_TRUE(is_partition_of(problem, result->partition));
    const PartitionCost cost = cost_of(problem, result->partition);
    EXPECT_EQ(cost.seconds, result->cost.seconds);
    EXPECT_GE(cost.seconds, result->bound);
    EXPECT_LE(cost.seconds * (1 - result->gap()), result->bound * (1 + kEqual));
    EXPECT_LT(result->gap(), 2e-3) << sync;
    EXPECT_LT(cost.imbalance, 1.01);
  }
}

TEST(Partition, CapacitiesAreKept) {
  Random random(13);
  PartitionProblem problem;
  for (int s = 0; s < 4; ++s) problem.sites.push_back(site(std::to_string(s), 1000, 403, random));
  // Room for exactly all neurons: 1612 on 4 DIMMs.
  problem.machine = {50'500, 936e9, 4, 403'000, 102.4e9, 0};
  for (const auto method : {PartitionMethod::ilp, PartitionMethod::greedy, PartitionMethod::random}) {
    const auto result = solve(problem, method);
    ASSERT_TRUE(result.ok()) << result.error().line();
    EXPECT_LE(result->cost.gpu_bytes, problem.machine.gpu_bytes);
    EXPECT_GT(result->cost.gpu_bytes, problem.machine.gpu_bytes - 2 * 1000) << name(method);
    EXPECT_EQ(result->cost.dimm_bytes, problem.machine.dimm_bytes);
  }
  problem.machine.dimm_bytes -= 1;
  EXPECT_EQ(solve(problem).code(), Code::no_space);
  problem.machine.dimm_bytes += 500;
  problem.machine.gpu_bytes = 0;
  const auto cold = solve(problem);
  ASSERT_TRUE(cold.ok());
  EXPECT_EQ(cold->cost.gpu_bytes, 0u);
}

TEST(Partition, ChanceIsSeeded) {
  Random random(17);
  PartitionProblem problem;
  problem.sites = {site("a", 64, 300, random)};
  problem.machine = {64 * 30, 936e9, 8, 64 * 300, 102.4e9, 0};
  const double first = seconds_of(problem, PartitionMethod::random, 4);
  EXPECT_EQ(first, seconds_of(problem, PartitionMethod::random, 4));
  EXPECT_NE(first, seconds_of(problem, PartitionMethod::random, 5));
}

TEST(Partition, NeuronsThatNeverFireTakeNoTime) {
  PartitionProblem problem;
  problem.sites = {{"a", 64, std::vector<float>(500, 0.0F)}};
  problem.machine = {640, 936e9, 8, 64 * 63, 102.4e9, 1e-6};
  const auto result = solve(problem);
  ASSERT_TRUE(result.ok()) << result.error().line();
  EXPECT_DOUBLE_EQ(result->cost.seconds, 2e-6);
  problem.machine.sync_seconds = 0;
  const auto none = solve(problem);
  ASSERT_TRUE(none.ok()) << none.error().line();
  EXPECT_EQ(none->cost.seconds, 0);
  EXPECT_EQ(none->gap(), 0);
  EXPECT_EQ(none->cost.imbalance, 1);
}

// In another text some of these neurons fire; on one DIMM all of them would be its load.
TEST(Partition, NeuronsThatNeverFireAreDealtOutEvenly) {
  Random random(23);
  PartitionProblem problem;
  problem.sites = {site("a", 64, 4000, random)};
  for (uint32_t i = 1; i < 4000; i += 2) problem.sites[0].frequency[i] = 0;
  problem.machine = {64 * 100, 936e9, 8, 64 * 4000, 102.4e9, 0};
  const auto result = solve(problem);
  ASSERT_TRUE(result.ok()) << result.error().line();
  std::vector<uint32_t> never(8, 0);
  for (uint32_t i = 1; i < 4000; i += 2) ++never[result->partition[0].home[i]];
  const auto [least, most] = std::ranges::minmax(never);
  EXPECT_LT(most - least, 60u);
}

TEST(Partition, NumbersThatMakeNoSenseAreRefused) {
  Random random(19);
  PartitionProblem good;
  good.sites = {site("layers.0.ffn", 64, 20, random)};
  good.machine = {640, 936e9, 2, 64 * 20, 102.4e9, 0};
  ASSERT_TRUE(check(good).ok());
  const auto refused = [&](const auto& spoil) {
    PartitionProblem bad = good;
    spoil(bad);
    return solve(bad).code() == Code::invalid_argument;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.machine.gpu_rate = 0; }));
  EXPECT_TRUE(refused([&](PartitionProblem& p) { p.machine.dimm_rate = nan; }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.machine.dimms = 0; }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.machine.sync_seconds = -1; }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.sites.clear(); }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.sites[0].neuron_bytes = 0; }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.sites[0].neuron_bytes = 1ull << 33; }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.sites[0].frequency.clear(); }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.sites[0].frequency[3] = 1.5F; }));
  EXPECT_TRUE(refused([](PartitionProblem& p) { p.sites[0].frequency[3] = -0.1F; }));
  EXPECT_TRUE(refused([&](PartitionProblem& p) { p.sites[0].frequency[3] = static_cast<float>(nan); }));
}

}  // namespace
}  // namespace tierd
