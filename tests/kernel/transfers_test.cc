// Transfers into the arena and transfers into blocks, from their start to their end.
#include "core/kernel/supply/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernel/one_memory.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Remembers what it hears, and answers a failure as the test says.
class Waiting final : public TransferWaiter {
 public:
  uint32_t started(Transfer& transfer) override {
    transfers.push_back(&transfer);
    return static_cast<uint32_t>(transfers.size() - 1);
  }
  void message_ended(const Done& /*done*/) override { log.emplace_back("message"); }
  void landed(const Transfer& /*transfer*/, uint32_t number) override {
    log.push_back("landed " + std::to_string(number));
  }
  Retry retry(uint32_t /*number*/) const override { return answer; }
  void failed(uint32_t number, const Error& error) override {
    log.push_back("failed " + std::to_string(number) + ": " + error.detail);
  }

  Retry answer = Retry::needless;
  std::vector<Transfer*> transfers;
  std::vector<std::string> log;
};

class TransfersOfOneMemory : public testing::Test {
 protected:
  explicit TransfersOfOneMemory(bool computed_from = true) : world(computed_from) {}
  FetchList list(const std::vector<uint32_t>& streamed, const std::vector<uint32_t>& kept = {}) {
    FetchList list = world.list(streamed, kept);
    list.waiter = &waiter;
    EXPECT_TRUE(world.sources.find(list).ok());
    return list;
  }
  // Starts a list whose neurons the store alone has.
  void start(const std::vector<uint32_t>& streamed, const std::vector<uint32_t>& kept = {}) {
    FetchList all = list(streamed, kept);
    EXPECT_TRUE(transfers.start_all(all));
    world.sources.leave(all);
    world.turn();
  }
  void end_read(DoneStatus status = DoneStatus::ok) {
    world.reads.end(status);
    world.turn();
  }
  void leave_and_give_up(Transfer& transfer) {
    EXPECT_TRUE(transfers.leave(transfer, waiter));
    transfers.give_up(transfer);
    world.turn();
  }

  OneMemory world;
  Waiting waiter;
  Transfers transfers{world.context, world.admission, world.sources, {.describe_extent = {}, .attempts = 2}};
};

class TransfersThatAreShared : public TransfersOfOneMemory {
 protected:
  TransfersThatAreShared() : TransfersOfOneMemory(false) {}
};

TEST_F(TransfersOfOneMemory, KeptNeuronsGoToSlotsOthersToABlock) {
  start({1, 6}, {3});
  ASSERT_EQ(waiter.transfers.size(), 2u);
  const BlockTransfer* const block = in_block(*waiter.transfers[0]);
  ASSERT_NE(block, nullptr);
  EXPECT_THAT(block->neurons, ElementsAre(1, 6));
  EXPECT_FALSE(block->shared);
  const uint32_t first = block->places[0];
  EXPECT_GE(first, 16u * OneMemory::kSlotBytes / kPlaceUnit);
  EXPECT_EQ(block->places[1], first + OneMemory::kSlotBytes / kPlaceUnit);
  const Transfer& kept = *waiter.transfers[1];
  EXPECT_EQ(in_block(kept), nullptr);
  EXPECT_THAT(kept.neurons, ElementsAre(3));
  EXPECT_THAT(kept.places, ElementsAre(transfers.arena_place(0, world.residency.slot(0, 3))));
  ASSERT_EQ(world.reads.open.size(), 2u);
  EXPECT_EQ(world.reads.open[0].second, (std::vector<Unit>{{1, block->places[0]}, {6, block->places[1]}}));
}

TEST_F(TransfersOfOneMemory, InTheArenaATransferIsOverOnceItLanded) {
  start({}, {3});
  end_read();
  EXPECT_THAT(waiter.log, ElementsAre("message", "landed 0"));
  EXPECT_TRUE(world.residency.valid(0, 3));
  EXPECT_THAT(transfers.all(), IsEmpty());
}

TEST_F(TransfersOfOneMemory, ABlockIsKeptUntilItIsClosed) {
  start({1});
  end_read();
  EXPECT_THAT(waiter.log, ElementsAre("message", "landed 0"));
  ASSERT_EQ(transfers.all().size(), 1u);
  BlockTransfer& block = *in_block(*transfers.all()[0]);
  EXPECT_EQ(block.state, Transfer::State::landed);
  EXPECT_TRUE(transfers.leave(block, waiter));
  transfers.close(block);
  EXPECT_THAT(transfers.all(), IsEmpty());
  EXPECT_EQ(world.counters.wasted, 0u);
  EXPECT_FALSE(world.residency.valid(0, 1));
}

TEST_F(TransfersOfOneMemory, WithoutABlockNothingStarts) {
  start({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(waiter.transfers.size(), 4u) << "two neurons in each of the four blocks";
  FetchList more = list({1}, {3});
  EXPECT_FALSE(transfers.start(more));
  EXPECT_EQ(more.next, 0u);
  transfers.give_up_all();
  EXPECT_EQ(transfers.all().size(), 4u) << "the waiter is left";
}

TEST_F(TransfersOfOneMemory, LookAheadLeavesABlockFree) {
  FetchList ahead = list({0, 1, 2, 3, 4, 5, 6, 7});
  ahead.priority = Priority::prefetch;
  EXPECT_FALSE(transfers.start_all(ahead));
  EXPECT_EQ(waiter.transfers.size(), 3u);
  FetchList demand = list({1});
  EXPECT_TRUE(transfers.start(demand));
}

TEST_F(TransfersOfOneMemory, AnAbandonedReadIntoABlockIsCancelledAndItsBlockComesBack) {
  start({1, 2});
  Transfer& block = *waiter.transfers[0];
  leave_and_give_up(block);
  EXPECT_EQ(block.state, Transfer::State::abandoned);
  ASSERT_EQ(world.reads.controls.size(), 1u);
  EXPECT_EQ(world.reads.controls[0].op, Op::cancel);
  leave_and_give_up(block);
  EXPECT_EQ(world.reads.controls.size(), 1u) << "once";
  end_read();
  EXPECT_THAT(transfers.all(), IsEmpty());
  EXPECT_EQ(world.counters.wasted, 2u);
  EXPECT_THAT(waiter.log, IsEmpty());
}

TEST_F(TransfersOfOneMemory, AReadIntoTheArenaIsPaidForAndKept) {
  start({}, {3});
  leave_and_give_up(*waiter.transfers[0]);
  EXPECT_THAT(world.reads.controls, IsEmpty());
  end_read();
  EXPECT_TRUE(world.residency.valid(0, 3));
  EXPECT_THAT(transfers.all(), IsEmpty());
  EXPECT_EQ(world.counters.wasted, 0u);
}

TEST_F(TransfersOfOneMemory, AFailureThatNoWaiterMindsIsOver) {
  start({1}, {3});
  end_read(DoneStatus::io_error);
  end_read(DoneStatus::io_error);
  EXPECT_EQ(world.counters.prefetch_failed, 2u);
  EXPECT_EQ(world.counters.retries, 0u);
  EXPECT_THAT(transfers.all(), IsEmpty());
  EXPECT_FALSE(world.residency.leased(0, 3));
  EXPECT_THAT(waiter.log, ElementsAre("message", testing::StartsWith("failed 0: read failed after 1"),
                                      "message", testing::StartsWith("failed 1: read failed after 1")));
}

TEST_F(TransfersOfOneMemory, AFailedTransferIsTriedAgainAsTheWaiterNeeds) {
  FetchList ahead = list({1});
  ahead.priority = Priority::prefetch;
  ASSERT_TRUE(transfers.start(ahead));
  world.turn();
  waiter.answer = TransferWaiter::Retry::as_it_was;
  end_read(DoneStatus::io_error);
  ASSERT_EQ(world.reads.open.size(), 1u);
  EXPECT_EQ(world.reads.open[0].first.priority, Priority::prefetch);
  EXPECT_EQ(world.counters.retries, 1u);
  waiter.answer = TransferWaiter::Retry::as_demand;
  end_read(DoneStatus::io_error);
  EXPECT_THAT(world.reads.open, IsEmpty()) << "two attempts";
  EXPECT_THAT(waiter.log.back(), testing::StartsWith("failed 0: read failed after 2"));

  ASSERT_TRUE(transfers.start(ahead = list({2})));
  world.turn();
  end_read(DoneStatus::io_error);
  ASSERT_EQ(world.reads.open.size(), 1u);
  EXPECT_EQ(world.reads.open[0].first.priority, Priority::demand);
  waiter.answer = TransferWaiter::Retry::impossible;
  end_read();
  EXPECT_EQ(waiter.log.back(), "landed 1");
}

TEST_F(TransfersOfOneMemory, ATransferThatARunWaitsForIsNotTriedAgain) {
  start({1});
  waiter.answer = TransferWaiter::Retry::impossible;
  end_read(DoneStatus::io_error);
  EXPECT_THAT(world.reads.open, IsEmpty());
  EXPECT_EQ(world.counters.prefetch_failed, 0u) << "it was wanted";
  EXPECT_THAT(transfers.all(), IsEmpty());
}

TEST_F(TransfersOfOneMemory, EachSourceHasItsOwnMessage) {
  world.below.valid = {3, 4};
  FetchList both = list({1, 2}, {3, 4});
  EXPECT_TRUE(transfers.start_all(both));
  world.turn();
  ASSERT_EQ(world.moves.open.size(), 1u);
  EXPECT_EQ(world.moves.open[0].first.from, OneMemory::kBelow);
  EXPECT_EQ(world.moves.open[0].second[0].unit, 1003u) << "the place that was offered";
  EXPECT_EQ(world.reads.open.size(), 1u);
  world.sources.leave(both);
  world.moves.end();
  world.turn();
  EXPECT_THAT(world.below.offers[0].log, ElementsAre("stop", "took 3 4", "closed"));
  EXPECT_EQ(transfers.messages().links()[0].messages, 1u);
  EXPECT_EQ(transfers.messages().links()[1].messages, 0u);
}

TEST_F(TransfersOfOneMemory, BlocksOfPassesThatAreOverAreGivenUp) {
  Wish wish{.step = 0, .parts = {list({1})}};
  wish.parts[0].waiter = nullptr;
  ASSERT_TRUE(transfers.start(wish));
  world.turn();
  end_read();
  EXPECT_FALSE(in_block(*transfers.all()[0])->shared) << "a unit computes from the memory";
  transfers.begin_pass(0, 0);
  EXPECT_EQ(transfers.all().size(), 1u) << "its own pass";
  transfers.end_step(0);
  EXPECT_THAT(transfers.all(), IsEmpty());
  EXPECT_EQ(world.counters.wasted, 1u);
}

TEST_F(TransfersThatAreShared, BlocksStayUntilTheirPassIsOver) {
  Wish wish{.step = 0, .parts = {list({1, 2})}};
  wish.parts[0].waiter = nullptr;
  ASSERT_TRUE(transfers.start(wish));
  world.turn();
  end_read();
  ASSERT_EQ(transfers.all().size(), 1u);
  BlockTransfer& block = *in_block(*transfers.all()[0]);
  ASSERT_TRUE(block.shared);
  transfers.give_up(block);
  EXPECT_EQ(transfers.all().size(), 1u) << "another gathering may fetch from it";
  block.shared->taken = 1;
  transfers.end_step(0);
  EXPECT_THAT(transfers.all(), IsEmpty());
  EXPECT_EQ(world.counters.wasted, 1u) << "the neuron that no memory has fetched";
}

}  // namespace
}  // namespace tierd
