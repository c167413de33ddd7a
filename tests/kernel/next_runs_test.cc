// The next read takes whole runs, the lowest first, as many as fit.
#include "core/kernel/supply/next_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

using testing::ElementsAre;

constexpr uint32_t kRun = 4;
constexpr size_t kAny = 1000;

Plan plan_of(std::initializer_list<uint32_t> neurons) {
  Plan plan;
  for (const uint32_t neuron : neurons) plan.neurons.push_back({neuron, true});
  return plan;
}

std::vector<uint32_t> taken(const NextRuns& asked) {
  std::vector<uint32_t> neurons;
  for (const Planned& planned : asked.taken()) neurons.push_back(planned.neuron);
  return neurons;
}

TEST(TakeRuns, AreAllWhereThereIsRoom) {
  Plan plan = plan_of({0, 3, 4, 9, 10, 11});
  NextRuns asked[] = {{.plan = &plan, .most = kAny}};
  take_runs(asked, kRun, kAny);
  EXPECT_THAT(taken(asked[0]), ElementsAre(0, 3, 4, 9, 10, 11));
}

TEST(TakeRuns, AreWhole) {
  Plan plan = plan_of({0, 3, 4, 9, 10, 11});
  NextRuns asked[] = {{.plan = &plan, .most = 5}};
  take_runs(asked, kRun, kAny);
  EXPECT_THAT(taken(asked[0]), ElementsAre(0, 3, 4));
  plan.next = asked[0].end;
  take_runs(asked, kRun, kAny);
  EXPECT_THAT(taken(asked[0]), ElementsAre(9, 10, 11));
}

TEST(TakeRuns, OfSeveralSitesAreTheLowest) {
  Plan first = plan_of({0, 8}), second = plan_of({1, 2, 5});
  NextRuns asked[] = {{.plan = &first, .most = kAny}, {.plan = &second, .most = 2}};
  take_runs(asked, kRun, kAny);
  EXPECT_THAT(taken(asked[0]), ElementsAre(0));
  EXPECT_THAT(taken(asked[1]), ElementsAre(1, 2)) << "run 1 does not fit, and run 2 is not taken before it";
}

TEST(TakeRuns, ListNoMoreThanAMessage) {
  Plan first = plan_of({0, 4}), second = plan_of({0, 4});
  NextRuns asked[] = {{.plan = &first, .most = kAny}, {.plan = &second, .most = kAny}};
  take_runs(asked, kRun, 3);
  EXPECT_THAT(taken(asked[0]), ElementsAre(0));
  EXPECT_THAT(taken(asked[1]), ElementsAre(0));
  take_runs(asked, kRun, 4);
  EXPECT_THAT(taken(asked[0]), ElementsAre(0, 4));
}

TEST(TakeRuns, TellWhetherSomethingStreamsBy) {
  Plan plan;
  plan.neurons = {{0, true}, {4, true}, {5, false}};
  NextRuns asked[] = {{.plan = &plan, .most = 2}};
  take_runs(asked, kRun, kAny);
  EXPECT_FALSE(asked[0].takes_streams());
  plan.next = asked[0].end;
  take_runs(asked, kRun, kAny);
  EXPECT_TRUE(asked[0].takes_streams());
}

// All runs are read once, in order, and each read but the last is as large as possible.
TEST(TakeRuns, ComeAllAtLast) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Plan> plans(1 + random.below(4));
    std::vector<NextRuns> asked;
    for (Plan& plan : plans) {
      for (uint32_t neuron = 0; neuron < 40; ++neuron) {
        if (random.below(3) == 0) plan.neurons.push_back({neuron, random.below(2) == 0});
      }
    }
    const size_t most_units = plans.size() * kRun + random.below(30);
    uint32_t lowest = 0;
    for (;;) {
      asked.clear();
      for (Plan& plan : plans) {
        if (!plan.done()) asked.push_back({.plan = &plan, .most = kRun + random.below(10)});
      }
      if (asked.empty()) break;
      take_runs(asked, kRun, most_units);
      size_t units = 0;
      uint32_t highest = lowest;
      for (const NextRuns& of : asked) {
        units += of.taken().size();
        EXPECT_LE(of.taken().size(), of.most);
        if (of.taken().empty()) continue;
        EXPECT_GE(of.taken().front().neuron / kRun, lowest);
        highest = std::max(highest, of.taken().back().neuron / kRun + 1);
        if (of.end == of.plan->neurons.size()) continue;
        EXPECT_NE(of.plan->neurons[of.end].neuron / kRun, of.taken().back().neuron / kRun);
      }
      ASSERT_GT(units, 0u);
      EXPECT_LE(units, most_units);
      for (const NextRuns& of : asked) of.plan->next = of.end;
      lowest = highest;
    }
  }
}

}  // namespace
}  // namespace tierd
