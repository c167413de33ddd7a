// Tests of the neurons that the next read takes: whole runs, the lowest first, as many as fit.
#include "core/kernel/supply/stretches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

using testing::ElementsAre;

constexpr uint32_t kStretch = 4;
constexpr size_t kAny = 1000;

FetchList list_of(std::initializer_list<uint32_t> neurons) {
  FetchList list;
  for (const uint32_t neuron : neurons) list.neurons.push_back({neuron, true});
  return list;
}

std::vector<uint32_t> taken_of(const NextStretches& asked) {
  std::vector<uint32_t> neurons;
  for (const ToFetch& of : asked.taken()) neurons.push_back(of.neuron);
  return neurons;
}

TEST(TakeStretches, AreAllWhereThereIsRoom) {
  FetchList list = list_of({0, 3, 4, 9, 10, 11});
  NextStretches asked[] = {{.list = &list, .most = kAny}};
  take_stretches(asked, kStretch, kAny);
  EXPECT_THAT(taken_of(asked[0]), ElementsAre(0, 3, 4, 9, 10, 11));
}

TEST(TakeStretches, AreWhole) {
  FetchList list = list_of({0, 3, 4, 9, 10, 11});
  NextStretches asked[] = {{.list = &list, .most = 5}};
  take_stretches(asked, kStretch, kAny);
  EXPECT_THAT(taken_of(asked[0]), ElementsAre(0, 3, 4));
  list.next = asked[0].end;
  take_stretches(asked, kStretch, kAny);
  EXPECT_THAT(taken_of(asked[0]), ElementsAre(9, 10, 11));
}

TEST(TakeStretches, OfSeveralSitesAreTheLowest) {
  FetchList first = list_of({0, 8}), second = list_of({1, 2, 5});
  NextStretches asked[] = {{.list = &first, .most = kAny}, {.list = &second, .most = 2}};
  take_stretches(asked, kStretch, kAny);
  EXPECT_THAT(taken_of(asked[0]), ElementsAre(0));
  EXPECT_THAT(taken_of(asked[1]), ElementsAre(1, 2))
      << "run 1 does not fit, and run 2 is not taken before it";
}

TEST(TakeStretches, ListNoMoreThanAMessage) {
  FetchList first = list_of({0, 4}), second = list_of({0, 4});
  NextStretches asked[] = {{.list = &first, .most = kAny}, {.list = &second, .most = kAny}};
  take_stretches(asked, kStretch, 3);
  EXPECT_THAT(taken_of(asked[0]), ElementsAre(0));
  EXPECT_THAT(taken_of(asked[1]), ElementsAre(0));
  take_stretches(asked, kStretch, 4);
  EXPECT_THAT(taken_of(asked[0]), ElementsAre(0, 4));
}

TEST(TakeStretches, TellWhetherSomethingStreamsBy) {
  FetchList list;
  list.neurons = {{0, true}, {4, true}, {5, false}};
  NextStretches asked[] = {{.list = &list, .most = 2}};
  take_stretches(asked, kStretch, kAny);
  EXPECT_FALSE(asked[0].takes_streams());
  list.next = asked[0].end;
  take_stretches(asked, kStretch, kAny);
  EXPECT_TRUE(asked[0].takes_streams());
}

// Read by read everything comes, once, in the order of the runs, and each read but the last is as large as it
// can be.
TEST(TakeStretches, ComeAllAtLast) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<FetchList> lists(1 + random.below(4));
    std::vector<NextStretches> asked;
    for (FetchList& list : lists) {
      for (uint32_t neuron = 0; neuron < 40; ++neuron) {
        if (random.below(3) == 0) list.neurons.push_back({neuron, random.below(2) == 0});
      }
    }
    const size_t most_units = lists.size() * kStretch + random.below(30);
    uint32_t lowest = 0;
    for (;;) {
      asked.clear();
      for (FetchList& list : lists) {
        if (!list.done()) asked.push_back({.list = &list, .most = kStretch + random.below(10)});
      }
      if (asked.empty()) break;
      take_stretches(asked, kStretch, most_units);
      size_t units = 0;
      uint32_t highest = lowest;
      for (const NextStretches& of : asked) {
        units += of.taken().size();
        EXPECT_LE(of.taken().size(), of.most);
        if (of.taken().empty()) continue;
        EXPECT_GE(of.taken().front().neuron / kStretch, lowest);
        highest = std::max(highest, of.taken().back().neuron / kStretch + 1);
        if (of.end == of.list->neurons.size()) continue;
        EXPECT_NE(of.list->neurons[of.end].neuron / kStretch, of.taken().back().neuron / kStretch);
      }
      ASSERT_GT(units, 0u);
      EXPECT_LE(units, most_units);
      for (const NextStretches& of : asked) of.list->next = of.end;
      lowest = highest;
    }
  }
}

}  // namespace
}  // namespace tierd
