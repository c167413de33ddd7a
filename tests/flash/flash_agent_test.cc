// The order in which reads start and the meaning of each message, with a device whose reads end on command.
#include "tiers/flash/flash_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/kernel/post/clocks.h"
#include "tests/flash/flash_world.h"
#include "tests/flash/manual_device.h"

namespace tierd {
namespace {

using testing::ElementsAre;

class FlashAgentTest : public testing::Test {
 protected:
  FlashAgentTest() { build({}, 1); }

  void build(const FlashOptions& options, uint32_t depth) {
    agent_.reset();
    auto device = std::make_unique<ManualDevice>(world_.content(), depth);
    device_ = device.get();
    agent_ = std::make_unique<FlashAgent>(FlashWorld::kAgent, world_.pools(), clock_, std::move(device),
                                          world_.table(), options);
  }
  Message submit(const Message& message) {
    EXPECT_EQ(agent_->submit(message, world_.payload(message)), Submit::ok);
    return message;
  }
  // A read of these extents with a gap before each destination, so that no two are joined.
  Message apart(const std::vector<uint32_t>& extents, Priority priority = Priority::demand) {
    return world_.read(extents, priority, [](size_t) { return 1; });
  }
  // Returns the extent with which the i-th started read begins.
  uint32_t started(size_t i = 0) {
    for (uint32_t extent = 0; extent < world_.table().size(); ++extent) {
      if (world_.table()[extent].offset == device_->started.at(i).offset) return extent;
    }
    ADD_FAILURE() << "no extent begins where the read does";
    return 0;
  }
  std::vector<Done> poll() {
    std::vector<Done> done(64);
    done.resize(agent_->poll(done));
    return done;
  }
  // Ends reads as they start until the agent is idle. Returns the extents in the order of their start.
  std::vector<uint32_t> finish_all() {
    std::vector<uint32_t> order;
    agent_->drive();
    while (!device_->started.empty()) {
      order.push_back(started());
      device_->finish(0);
      while (agent_->drive() == Drive::busy) {
      }
    }
    return order;
  }
  uint32_t adjacent_pair() {
    for (uint32_t i = 0; i + 1 < world_.table().size(); ++i) {
      if (world_.table()[i].offset + world_.table()[i].bytes == world_.table()[i + 1].offset) return i;
    }
    ADD_FAILURE() << "no neighbours in this world";
    return 0;
  }

  FlashWorld world_{11};
  ManualDevice* device_ = nullptr;
  WallClock clock_;
  std::unique_ptr<FlashAgent> agent_;
};

TEST_F(FlashAgentTest, DemandOvertakesQueuedPrefetchOvertakesMigration) {
  submit(apart({1, 2}, Priority::migration));
  submit(apart({3, 4, 5}, Priority::prefetch));
  agent_->drive();  // starts 3
  submit(apart({6, 7}));
  submit(apart({8}));
  EXPECT_THAT(finish_all(), ElementsAre(3, 6, 7, 8, 4, 5, 1, 2));
  for (const Done& done : poll()) EXPECT_EQ(done.status, DoneStatus::ok);
}

TEST_F(FlashAgentTest, KeepsTheDeviceFullAndNeverFuller) {
  build({}, 4);
  submit(apart({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  agent_->drive();
  EXPECT_EQ(device_->started.size(), 4u);
  device_->finish(1);
  device_->finish(0);
  agent_->drive();
  EXPECT_EQ(device_->started.size(), 4u);
}

// At least eight reads are in flight, however few bytes may be.
TEST_F(FlashAgentTest, BeginsNoMoreReadsThanBytesInFlightAllow) {
  std::vector<uint32_t> extents;
  uint64_t bytes = 0;
  for (uint32_t extent = 1; extent <= 12; ++extent) {
    extents.push_back(extent);
    if (extent <= 10) bytes += world_.table()[extent].bytes;
  }
  for (const auto& [in_flight, expected] :
       {std::pair{uint64_t{1}, size_t{8}}, {bytes, size_t{10}}, {UINT64_MAX, size_t{12}}}) {
    build({.in_flight_bytes = in_flight}, 128);
    submit(apart(extents));
    agent_->drive();
    EXPECT_EQ(device_->started.size(), expected) << in_flight;
    device_->finish(0);
    agent_->drive();
    EXPECT_GE(device_->started.size(), std::min(expected, extents.size() - 1)) << in_flight;
    EXPECT_EQ(finish_all().size(), extents.size() - 1) << in_flight;
  }
}

TEST_F(FlashAgentTest, PrefetchesTakeLittleFromDemands) {
  uint64_t least = UINT64_MAX;
  for (uint32_t extent = 1; extent <= 8; ++extent)
    least = std::min<uint64_t>(least, world_.table()[extent].bytes);
  for (const auto& [in_flight, beside] : {std::pair{4 * least, size_t{0}}, {UINT64_MAX, size_t{4}}}) {
    build({.in_flight_bytes = in_flight}, 128);
    submit(apart({1}));
    submit(apart({2, 3, 4, 5}, Priority::prefetch));
    submit(apart({6, 7, 8}));
    agent_->drive();
    EXPECT_EQ(device_->started.size(), 4 + beside) << in_flight;
    for (int demand = 0; demand < 4; ++demand) device_->finish(0);
    agent_->drive();  // no demand is waiting
    EXPECT_EQ(device_->started.size(), 4u) << in_flight;
    EXPECT_EQ(finish_all().size(), 4u) << in_flight;
  }
}

TEST_F(FlashAgentTest, JoinsNeighboursUpToTheLimit) {
  const uint32_t first = adjacent_pair();
  const uint64_t both = world_.table()[first].bytes + world_.table()[first + 1].bytes;
  Message message = submit(world_.read({first, first + 1}));
  agent_->drive();
  ASSERT_EQ(device_->started.size(), 1u);
  EXPECT_EQ(device_->started[0].into.size(), both);
  finish_all();
  world_.expect_landed(message, 2);
  EXPECT_EQ(agent_->counts().read.joined, 1u);

  build({.max_read_bytes = both - 1}, 4);
  submit(world_.read({first, first + 1}));
  submit(apart({first, first + 1}));
  submit(world_.read({first + 1, first}));
  agent_->drive();
  EXPECT_EQ(device_->started.size(), 4u);
  EXPECT_EQ(agent_->counts().read.joined, 0u);
}

TEST_F(FlashAgentTest, CancelDropsWhatHasNotStarted) {
  const Message read = submit(apart({1, 2, 3}));
  agent_->drive();
  const Message cancel = submit(world_.about(Op::cancel, read.id));
  std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 1u);  // the read waits for extent 1
  EXPECT_EQ(done[0].id, cancel.id);
  EXPECT_EQ(done[0].status, DoneStatus::ok);
  EXPECT_EQ(done[0].n_done, 2u);
  EXPECT_THAT(finish_all(), ElementsAre(1));
  done = poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].id, read.id);
  EXPECT_EQ(done[0].status, DoneStatus::cancelled);
  EXPECT_EQ(done[0].n_done, 1u);
  world_.expect_landed(read, 1);
}

TEST_F(FlashAgentTest, CancelOfAnUnstartedReadCompletesItAtOnce) {
  submit(apart({1}));
  const Message read = submit(apart({2, 3}, Priority::prefetch));
  agent_->drive();
  submit(world_.about(Op::cancel, read.id));
  const std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_THAT(finish_all(), ElementsAre(1));
}

TEST_F(FlashAgentTest, CancelTooLateChangesNothing) {
  const Message read = submit(apart({1}));
  agent_->drive();
  submit(world_.about(Op::cancel, read.id));
  finish_all();
  const std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].n_done, 0u);
  EXPECT_EQ(done[1].id, read.id);
  EXPECT_EQ(done[1].status, DoneStatus::ok);
}

TEST_F(FlashAgentTest, StaleGenerationIsNotCancelled) {
  const Message read = submit(apart({1, 2}));
  submit(world_.about(Op::cancel, {.slot = read.id.slot, .generation = read.id.generation - 1}));
  EXPECT_THAT(finish_all(), ElementsAre(1, 2));
}

TEST_F(FlashAgentTest, EditRaisesAQueuedPrefetch) {
  submit(apart({1}));
  submit(apart({2, 3}, Priority::prefetch));
  const Message wanted = submit(apart({4, 5}, Priority::prefetch));
  submit(apart({6}));
  submit(world_.about(Op::raise, wanted.id));
  EXPECT_THAT(finish_all(), ElementsAre(1, 6, 4, 5, 2, 3));
}

TEST_F(FlashAgentTest, ExpiredPrefetchIsDroppedAtItsTurn) {
  Message stale = apart({1, 2}, Priority::prefetch);
  stale.expires_step = 5;
  Message fresh = apart({3}, Priority::prefetch);
  fresh.expires_step = 6;
  Message raised = apart({4}, Priority::prefetch);
  raised.expires_step = 5;
  submit(stale);
  submit(fresh);
  submit(raised);
  submit(world_.about(Op::raise, raised.id));
  Message demand = apart({5});
  demand.step = 6;
  submit(demand);
  EXPECT_THAT(finish_all(), ElementsAre(4, 5, 3));
  for (const Done& done : poll()) {
    EXPECT_EQ(done.status, done.id == stale.id ? DoneStatus::cancelled : DoneStatus::ok);
  }
  EXPECT_EQ(agent_->counts().read.dropped_extents, 2u);
}

TEST_F(FlashAgentTest, ChecksumMismatchNamesTheUnit) {
  const uint32_t first = adjacent_pair();
  world_.table()[first + 1].checksum ^= 1;
  submit(world_.read({5, first, first + 1, 6}));
  finish_all();
  std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, DoneStatus::corrupt);
  EXPECT_EQ(done[0].first_bad, 2u);
  EXPECT_EQ(done[0].n_done, 3u);

  build({.verify = false}, 1);
  submit(world_.read({first + 1}));
  finish_all();
  EXPECT_EQ(poll().at(0).status, DoneStatus::ok);
}

// The extents behind the error are read again, one by one.
TEST_F(FlashAgentTest, ErrorOfAJoinedReadSparesWhatLandedBefore) {
  const uint32_t first = adjacent_pair();
  const auto landed = static_cast<int32_t>(world_.table()[first].bytes);
  const Message read = submit(world_.read({first, first + 1}));
  agent_->drive();
  device_->finish(0, landed);
  agent_->drive();
  device_->finish(0, -EIO);
  agent_->drive();
  EXPECT_TRUE(poll().empty());
  agent_->drive();
  EXPECT_EQ(started(), first + 1);
  device_->finish(0, -EIO);
  agent_->drive();
  const std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, DoneStatus::io_error);
  EXPECT_EQ(done[0].error, EIO);
  EXPECT_EQ(done[0].first_bad, 1u);
  EXPECT_EQ(done[0].n_done, 1u);
  world_.expect_landed(read, 1);
}

TEST_F(FlashAgentTest, FirstBadIsTheFirstInTheListNotInTime) {
  build({}, 2);
  submit(apart({1, 2}));
  agent_->drive();
  device_->finish(1, -EIO);
  agent_->drive();
  device_->finish(0, -ENXIO);
  agent_->drive();
  const std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].first_bad, 0u);
  EXPECT_EQ(done[0].error, ENXIO);
}

TEST_F(FlashAgentTest, AgainEndsAsAnErrorAfterManyTries) {
  submit(apart({1}));
  uint32_t tries = 0;
  std::vector<Done> done;
  while (done.empty()) {
    EXPECT_EQ(agent_->drive(), Drive::busy);
    if (!device_->started.empty()) {
      device_->finish(0, -EAGAIN);
      ++tries;
    }
    done = poll();
  }
  EXPECT_EQ(done[0].status, DoneStatus::io_error);
  EXPECT_EQ(done[0].error, EAGAIN);
  EXPECT_EQ(tries, 101u);
}

TEST_F(FlashAgentTest, RefusedContinuationStartsAgain) {
  const uint32_t large = adjacent_pair();
  const Message read = submit(world_.read({large, large + 1}));
  agent_->drive();
  device_->finish(0, 4096 + 17);
  agent_->drive();
  EXPECT_EQ(device_->started.at(0).offset, world_.table()[large].offset + 4096);
  device_->finish(0, -EINVAL);
  agent_->drive();
  EXPECT_EQ(started(), large);
  finish_all();
  EXPECT_EQ(poll().at(0).status, DoneStatus::ok);
  world_.expect_landed(read, 2);
}

TEST_F(FlashAgentTest, FileThatEndsInsideAnExtentIsAnError) {
  submit(apart({1}));
  std::vector<Done> done;
  while (done.empty()) {
    agent_->drive();
    if (!device_->started.empty()) device_->finish(0, 0);
    done = poll();
  }
  EXPECT_EQ(done[0].status, DoneStatus::io_error);
  EXPECT_EQ(done[0].error, ENODATA);
}

TEST_F(FlashAgentTest, BadListsAreRefusedWithTheUnit) {
  submit(apart({1, 9999, 2}));
  const Message unaligned = apart({3, 4});
  world_.units(unaligned)[1].place += 1;
  submit(unaligned);
  submit(world_.read({}));
  EXPECT_THAT(finish_all(), ElementsAre(1, 2, 3));
  const std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].status, DoneStatus::ok);  // the empty list
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(done[i].status, DoneStatus::invalid_argument);
    EXPECT_EQ(done[i].first_bad, 1u);
  }
  EXPECT_EQ(done[1].n_done, 2u);
}

TEST_F(FlashAgentTest, OtherOpsAreInvalid) {
  for (const Op op : {Op::run, Op::move, Op::resize}) {
    submit(world_.plain(op));
    EXPECT_EQ(poll().at(0).status, DoneStatus::invalid_argument);
  }
}

TEST_F(FlashAgentTest, CountsWhatLanded) {
  submit(apart({1, 2}));
  finish_all();
  const std::vector<Done> done = poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].bytes, world_.table()[1].bytes + world_.table()[2].bytes);
  EXPECT_EQ(agent_->counts().read.bytes, done[0].bytes);
  EXPECT_EQ(agent_->counts().read.extents, 2u);
  EXPECT_EQ(agent_->counts().read.reads, 2u);
}

TEST_F(FlashAgentTest, CountsMayBeReadByAnotherThreadMeanwhile) {
  std::jthread watcher([this](const std::stop_token& over) {
    uint64_t seen = 0;
    while (!over.stop_requested()) {
      const uint64_t now = agent_->counts().read.extents;
      EXPECT_GE(now, seen);
      seen = now;
    }
  });
  for (int round = 0; round < 20; ++round) {
    submit(apart({1, 2, 3, 4, 5}));
    finish_all();
    EXPECT_EQ(poll().size(), 1u);
  }
  watcher = {};
  EXPECT_EQ(agent_->counts().read.extents, 100u);
}

TEST_F(FlashAgentTest, RefillsTheDeviceBeforeItVerifies) {
  // More bytes have landed than one drive verifies, but the device is refilled first.
  build({}, 2);
  submit(apart({1, 2, 3, 4, 5}));
  agent_->drive();
  device_->finish(0);
  device_->finish(0);
  const uint64_t verified = agent_->counts().read.extents;
  agent_->drive();
  EXPECT_EQ(device_->started.size(), 2u);
  EXPECT_EQ(agent_->counts().read.extents, verified + 2);
}

}  // namespace
}  // namespace tierd
