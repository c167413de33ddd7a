// Where a memory fetches from, and what becomes of the offers that others make it.
#include "core/kernel/supply/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/supply/transfer.h"
#include "tests/kernel/one_memory.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint32_t> numbers(const FetchList& list) {
  std::vector<uint32_t> neurons;
  for (const ToFetch& of : list.neurons) neurons.push_back(of.neuron);
  return neurons;
}
std::vector<uint32_t> wanted(const Offer& offer) {
  const ActiveSet& set = static_cast<const ScriptedOffer&>(offer).request.set();
  std::vector<uint32_t> neurons;
  for (uint32_t i = 0; i < set.size(); ++i) neurons.push_back(set[i]);
  return neurons;
}

// The links into the memory lead from the one below, and from the store.
constexpr uint8_t kFromBelow = 0, kFromStore = 1;

TEST(Sources, OverTheStoreAloneNothingIsOffered) {
  OneMemory world;
  const SupplyContext context{OneMemory::kBelow, world.dispatcher, world.sites,  world.topology,
                              world.residency,   world.counters,   world.changed};
  Sources sources(context, world.memories);
  FetchList list = world.list({1, 2});
  ASSERT_TRUE(sources.find(list).ok());
  EXPECT_THAT(list.below, IsEmpty());
  EXPECT_TRUE(list.ready(0) && list.ready(1));
}

TEST(Sources, TheNearestMemoryThatHoldsANeuronIsItsSource) {
  OneMemory world;
  world.below.valid = {2, 5};
  FetchList list = world.list({7, 5, 1, 2});
  list.priority = Priority::prefetch;
  ASSERT_TRUE(world.sources.find(list).ok());
  ASSERT_EQ(world.below.offers.size(), 1u);
  EXPECT_THAT(wanted(world.below.offers[0]), ElementsAre(2, 5));
  const GatherRequest& request = world.below.offers[0].request;
  EXPECT_EQ(request.purpose, (Purpose{0, 0, OneMemory::kId})) << "for the memory above";
  EXPECT_EQ(request.priority, Priority::prefetch);
  for (const ToFetch& of : list.neurons)
    EXPECT_EQ(of.source, of.neuron == 2 || of.neuron == 5 ? kFromBelow : kFromStore) << of.neuron;
  EXPECT_TRUE(world.sources.next_to(0, 5));
  EXPECT_FALSE(world.sources.next_to(0, 7)) << "the store is no memory";
  world.sources.leave(list);
}

TEST(Sources, NeuronsThatNoMemoryHoldsAreFetchedIntoTheOneBelowFirst) {
  OneMemory world;
  Topology topology = world.topology;
  topology.links.pop_back();
  const SupplyContext context{OneMemory::kId,  world.dispatcher, world.sites,  topology,
                              world.residency, world.counters,   world.changed};
  Sources sources(context, world.memories);
  FetchList list = world.list({3, 1});
  ASSERT_TRUE(sources.find(list).ok());
  EXPECT_THAT(wanted(*list.below[0]), ElementsAre(1, 3));
  EXPECT_FALSE(list.ready(0));
  world.below.offers[0].places[3] = 7;
  EXPECT_TRUE(list.ready(0));
  EXPECT_FALSE(list.ready(1));
  sources.fetch();
  EXPECT_EQ(world.below.fetches, 1);
  sources.leave(list);
}

TEST(Sources, InAnyOrderTheReadyOnesComeFirst) {
  OneMemory world;
  world.below.valid = {4, 6};
  FetchList list = world.list({1, 4, 3, 6});
  ASSERT_TRUE(world.sources.find(list).ok());
  EXPECT_THAT(numbers(list), ElementsAre(4, 6, 1, 3)) << "by source, those of the nearest memory first";
  world.sources.leave(list);
  FetchList in_order = world.list({1, 4, 3, 6});
  in_order.any_order = false;
  ASSERT_TRUE(world.sources.find(in_order).ok());
  EXPECT_THAT(numbers(in_order), ElementsAre(1, 4, 3, 6));
  world.sources.leave(in_order);
}

TEST(Sources, RefusedNeuronsLeaveTheListAndTheirSlots) {
  OneMemory world;
  world.below.valid = {2, 5};
  world.below.refuses = {5};
  FetchList list = world.list({1}, {2, 5});
  ASSERT_TRUE(world.sources.find(list).ok());
  EXPECT_THAT(numbers(list), testing::UnorderedElementsAre(1, 2));
  EXPECT_TRUE(world.residency.leased(0, 2));
  EXPECT_FALSE(world.residency.leased(0, 5));
  world.sources.leave(list);
}

TEST(Sources, AFaultBelowIsReturnedAndNothingIsGathered) {
  OneMemory world;
  world.below.valid = {2};
  world.below.fault = Error{Code::plugin_fault, "cache", "is broken"};
  FetchList list = world.list({1, 2});
  EXPECT_EQ(world.sources.find(list).error().code, Code::plugin_fault);
  EXPECT_THAT(list.below, IsEmpty());
}

TEST(Sources, AListCannotBeFetchedOnceItsOfferHasFailed) {
  OneMemory world;
  world.below.valid = {2};
  FetchList list = world.list({2});
  ASSERT_TRUE(world.sources.find(list).ok());
  EXPECT_TRUE(Sources::status(list).ok());
  world.below.offers[0].fault = Error{Code::io_error, "store", "cannot be read"};
  EXPECT_EQ(Sources::status(list).error().code, Code::io_error);
  world.sources.leave(list);
}

TEST(Sources, TheLastHolderClosesAnOffer) {
  OneMemory world;
  world.below.valid = {2, 5};
  FetchList list = world.list({2, 5});
  ASSERT_TRUE(world.sources.find(list).ok());
  ScriptedOffer& offer = world.below.offers[0];
  BlockTransfer transfer;
  transfer.source = kFromBelow;
  transfer.neurons = {2};
  transfer.below = list.below[kFromBelow];
  transfer.below->hold();
  world.sources.leave(list);
  EXPECT_THAT(offer.log, ElementsAre("stop"));
  world.sources.leave(transfer);
  EXPECT_THAT(offer.log, ElementsAre("stop", "took 2", "closed"));
  EXPECT_EQ(transfer.below, nullptr);
  world.sources.leave(transfer);
  EXPECT_EQ(offer.log.size(), 3u) << "it has let go already";
}

TEST(Sources, AHandOverKeepsWhatIsBeingMoved) {
  OneMemory world;
  world.below.valid = {2, 5, 6};
  FetchList list = world.list({2, 5, 6});
  ASSERT_TRUE(world.sources.find(list).ok());
  ScriptedOffer& offer = world.below.offers[0];
  BlockTransfer transfer, other;
  transfer.neurons = {5, 6};
  transfer.below = list.below[kFromBelow];
  transfer.below->hold();
  other.neurons = {1};
  Transfer* const moving[] = {&transfer, &other};
  world.sources.hand_over(list, moving);
  EXPECT_THAT(offer.log, ElementsAre("stop", "keep 5 6"));
  world.sources.leave(transfer);
  EXPECT_THAT(offer.log, ElementsAre("stop", "keep 5 6", "took 5 6", "closed"));

  FetchList alone = world.list({2});
  ASSERT_TRUE(world.sources.find(alone).ok());
  world.sources.hand_over(alone, {});
  EXPECT_THAT(world.below.offers[1].log, ElementsAre("closed for the next"));
}

}  // namespace
}  // namespace tierd
