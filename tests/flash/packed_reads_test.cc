// Packed extents in the file: read through the bounce buffer, several in one read, with gaps read through.
// Data and errors equal those of a reader that reads each extent separately.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/kernel/post/clocks.h"
#include "tests/e2e/bad_place_device.h"
#include "tests/flash/flash_world.h"
#include "tests/flash/manual_device.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

using testing::ElementsAre;

// A device whose reads end on command, over a file whose extents the test places.
class PackedReads : public testing::Test {
 protected:
  void build(std::vector<ExtentRef> table, uint64_t end, const FlashOptions& options, uint64_t bounce_blocks,
             uint32_t depth = 8) {
    agent_.reset();
    world_ = std::make_unique<FlashWorld>(std::move(table), end);
    auto device = std::make_unique<ManualDevice>(world_->content(), depth);
    device_ = device.get();
    auto bounce = BounceBuffer::create(bounce_blocks * kBlock);
    ASSERT_TRUE(bounce.ok());
    agent_ = std::make_unique<FlashAgent>(FlashWorld::kAgent, world_->pools(), clock_, std::move(device),
                                          world_->table(), options, std::move(*bounce));
  }
  Message submit(const Message& message) {
    EXPECT_EQ(agent_->submit(message, world_->payload(message)), Submit::ok);
    while (agent_->drive() == Drive::busy) {
    }
    return message;
  }
  void drive() {
    while (agent_->drive() == Drive::busy) {
    }
  }
  void finish_all() {
    while (!device_->started.empty()) {
      device_->finish(0);
      drive();
    }
  }
  std::vector<uint64_t> started_offsets() const {
    std::vector<uint64_t> offsets;
    for (const DeviceRead& read : device_->started) offsets.push_back(read.offset);
    return offsets;
  }
  Done only_done() {
    std::vector<Done> done(8);
    done.resize(agent_->poll(done));
    EXPECT_EQ(done.size(), 1u);
    return done.empty() ? Done() : done.front();
  }

  std::unique_ptr<FlashWorld> world_;
  ManualDevice* device_ = nullptr;
  WallClock clock_;
  std::unique_ptr<FlashAgent> agent_;
};

// Three extents close together and one far away.
std::vector<ExtentRef> three_and_one() {
  return {{.offset = 64, .bytes = 1024},
          {.offset = 1088, .bytes = 1024},
          {.offset = 5 * kBlock - 512, .bytes = 1024},
          {.offset = 40 * kBlock, .bytes = 1024}};
}

TEST_F(PackedReads, AListInAnyOrderIsReadInTheOrderOfTheFile) {
  std::vector<uint32_t> order = {0, 1, 2, 3};
  do {
    build(three_and_one(), 41 * kBlock, {.gap_bytes = 3 * kBlock}, 64);
    const Message message = submit(world_->read(order));
    EXPECT_THAT(started_offsets(), ElementsAre(0, 40 * kBlock));
    EXPECT_EQ(device_->started[0].into.size(), 6 * kBlock);
    finish_all();
    const Done done = only_done();
    EXPECT_EQ(done.status, DoneStatus::ok);
    EXPECT_EQ(done.n_done, 4u);
    EXPECT_EQ(done.bytes, 4096u);
    world_->expect_landed(message, 4);
  } while (std::ranges::next_permutation(order).found);
}

// Gate, up and down of two neurons in separate pieces: neuron 1 is extents 1, 3 and 5.
TEST_F(PackedReads, ANeuronInPiecesComesWhole) {
  std::vector<ExtentRef> table;
  for (uint64_t i = 0; i < 6; ++i) table.push_back({.offset = 1024 * i, .bytes = 1024});
  const std::vector<ExtentPieces> pieces = {{.first = 0, .n = 2, .pieces = 3, .apart = 2048}};
  build(table, 2 * kBlock, {.pieces = pieces}, 8);
  const Message message = submit(world_->read({1}));
  finish_all();
  const Done done = only_done();
  EXPECT_EQ(done.status, DoneStatus::ok);
  EXPECT_EQ(done.bytes, 3072u);
  const Unit unit = world_->units(message).front();
  for (uint32_t piece = 0; piece < 3; ++piece) {
    const std::byte* found =
        world_->memory().data() + unit.place * kPlaceUnit + uint64_t{piece} * pieces.front().apart;
    EXPECT_EQ(std::memcmp(found, world_->content().data() + table[1 + 2 * piece].offset, 1024), 0) << piece;
  }
  // A piece that cannot be read fails its neuron.
  world_->table()[3].checksum ^= 1;
  submit(world_->read({0, 1}));
  finish_all();
  const Done bad = only_done();
  EXPECT_EQ(bad.status, DoneStatus::corrupt);
  EXPECT_EQ(bad.first_bad, 1u);
}

TEST_F(PackedReads, CountsWhatWasAskedReadAndWasted) {
  build(three_and_one(), 41 * kBlock, {.gap_bytes = 3 * kBlock}, 64);
  submit(world_->read({3, 2, 1, 0}));
  finish_all();
  EXPECT_EQ(only_done().reads, 2u);
  const ReadCounts counts = agent_->counts().read;
  EXPECT_EQ(counts.extents, 4u);
  EXPECT_EQ(counts.bytes, 4096u);
  EXPECT_EQ(counts.asked_bytes, 4096u);
  EXPECT_EQ(counts.read_bytes, 7 * kBlock);
  EXPECT_EQ(counts.wasted_bytes, 7 * kBlock - 4096);
  EXPECT_EQ(counts.reads, 2u);
  EXPECT_EQ(counts.joined, 2u);
  EXPECT_EQ(counts.reads_of_size[0], 1u);  // one block
  EXPECT_EQ(counts.reads_of_size[2], 1u);  // six: four and more
  EXPECT_EQ(std::accumulate(std::begin(counts.reads_of_size), std::end(counts.reads_of_size), uint64_t{0}),
            counts.reads);
  EXPECT_GT(counts.in_flight_ns, 0u);
}

TEST_F(PackedReads, ReadsGapsOnlyUpToTheBreakEven) {
  for (const uint64_t gap : {uint64_t{0}, kBlock, 3 * kBlock - 1, 3 * kBlock, 33 * kBlock, 100 * kBlock}) {
    build(three_and_one(), 41 * kBlock, {.gap_bytes = gap}, 400);
    const Message message = submit(world_->read({0, 1, 2, 3}));
    EXPECT_EQ(device_->started.size(), gap < 3 * kBlock ? 3u : gap < 34 * kBlock ? 2u : 1u) << gap;
    finish_all();
    EXPECT_EQ(only_done().status, DoneStatus::ok);
    world_->expect_landed(message, 4);
  }
}

// The file is padded to a whole last block.
TEST_F(PackedReads, TheEndOfTheFile) {
  build({{.offset = 64, .bytes = 64}, {.offset = 3 * kBlock + 128, .bytes = 192}}, 3 * kBlock + 320,
        {.gap_bytes = 2 * kBlock}, 32);
  EXPECT_EQ(world_->content().size(), 4 * kBlock);
  const Message message = submit(world_->read({1, 0}));
  ASSERT_EQ(device_->started.size(), 1u);
  EXPECT_EQ(device_->started[0].into.size(), 4 * kBlock);
  finish_all();
  EXPECT_EQ(only_done().status, DoneStatus::ok);
  world_->expect_landed(message, 2);
}

// A truncated file still gives the bytes before its end, also where it ends inside a block.
TEST_F(PackedReads, TheEndOfAFileThatWasCut) {
  build(three_and_one(), 41 * kBlock, {.gap_bytes = 3 * kBlock}, 64);
  const Message message = submit(world_->read({0, 1, 2}));
  // The file ends with extent 1.
  for (int i = 0; i < 1000 && !device_->started.empty(); ++i) {
    const DeviceRead& read = device_->started.front();
    device_->finish(0, read.offset == 0 ? 2112 : 0);
    drive();
  }
  const Done done = only_done();
  EXPECT_EQ(done.status, DoneStatus::io_error);
  EXPECT_EQ(done.error, ENODATA);
  EXPECT_EQ(done.first_bad, 2u);
  EXPECT_EQ(done.n_done, 2u);
  world_->expect_landed(message, 2);
}

TEST_F(PackedReads, AShortReadGoesOnWhereItStopped) {
  build(three_and_one(), 41 * kBlock, {.gap_bytes = 3 * kBlock}, 64);
  const Message message = submit(world_->read({0, 1, 2}));
  device_->finish(0, 4096 + 700);
  drive();
  EXPECT_THAT(started_offsets(), ElementsAre(kBlock));
  device_->finish(0, 0);
  drive();
  finish_all();
  EXPECT_EQ(only_done().status, DoneStatus::ok);
  world_->expect_landed(message, 3);
}

TEST_F(PackedReads, AnErrorInAGapHurtsNobody) {
  build(three_and_one(), 41 * kBlock, {.gap_bytes = 3 * kBlock}, 64);
  const Message message = submit(world_->read({2, 0, 1}));
  device_->finish(0, 2 * kBlock);
  drive();
  device_->finish(0, -EIO);
  drive();
  EXPECT_THAT(started_offsets(), ElementsAre(4 * kBlock));  // extent 2, alone
  finish_all();
  EXPECT_EQ(only_done().status, DoneStatus::ok);
  world_->expect_landed(message, 3);
  EXPECT_EQ(agent_->counts().read.failed_extents, 0u);
}

TEST_F(PackedReads, AnErrorIsOfTheExtentThatFailsAlone) {
  build(three_and_one(), 41 * kBlock, {.gap_bytes = 3 * kBlock}, 64);
  submit(world_->read({2, 1, 0}));
  device_->finish(0, -EIO);
  drive();
  ASSERT_EQ(device_->started.size(), 3u);
  for (size_t i = device_->started.size(); i-- > 0;) {
    // Extents 0 and 1 are in the first block.
    device_->started[i].offset == 0 ? device_->finish(i) : device_->finish(i, -EIO);
  }
  drive();
  const Done done = only_done();
  EXPECT_EQ(done.status, DoneStatus::io_error);
  EXPECT_EQ(done.error, EIO);
  EXPECT_EQ(done.first_bad, 0u);
  EXPECT_EQ(done.n_done, 2u);
}

TEST_F(PackedReads, AWrongChecksumIsOfItsExtentAlone) {
  build(three_and_one(), 41 * kBlock, {.gap_bytes = 3 * kBlock}, 64);
  world_->table()[1].checksum ^= 1;
  submit(world_->read({2, 0, 1}));
  finish_all();
  const Done done = only_done();
  EXPECT_EQ(done.status, DoneStatus::corrupt);
  EXPECT_EQ(done.first_bad, 2u);
  EXPECT_EQ(done.n_done, 2u);
}

TEST_F(PackedReads, ABounceBufferSmallerThanAMessage) {
  std::vector<ExtentRef> table;
  for (uint64_t i = 0; i < 20; ++i) table.push_back({.offset = i * 8000, .bytes = 4992});
  build(table, 20 * 8000, {.gap_bytes = kBlock}, 7, 32);
  std::vector<uint32_t> all(20);
  std::iota(all.rbegin(), all.rend(), 0);
  const Message message = submit(world_->read(all));
  const auto in_device = [this] {
    uint64_t bytes = 0;
    for (const DeviceRead& read : device_->started) bytes += read.into.size();
    return bytes;
  };
  size_t rounds = 0;
  for (; !device_->started.empty(); ++rounds) {
    EXPECT_LE(in_device(), 7 * kBlock);
    device_->finish(device_->started.size() - 1);
    drive();
  }
  EXPECT_GE(rounds, 6u);
  EXPECT_EQ(only_done().status, DoneStatus::ok);
  world_->expect_landed(message, 20);
}

// Blocks use the bounce buffer while it has room, else they land directly.
TEST_F(PackedReads, BlocksThatPreferTheBounceBufferDoNotWaitForIt) {
  std::vector<ExtentRef> table;
  for (uint64_t i = 0; i < 8; ++i) table.push_back({.offset = i * 4 * kBlock, .bytes = 2 * kBlock});
  build(table, 32 * kBlock, {.prefer_bounce = true}, 6, 8);
  std::vector<uint32_t> all(8);
  std::iota(all.begin(), all.end(), 0);
  const Message message = submit(world_->read(all));
  ASSERT_EQ(device_->started.size(), 8u);
  const auto bounced = [this] {
    const std::span<std::byte> memory = world_->memory();
    return std::ranges::count_if(device_->started, [&](const DeviceRead& read) {
      return read.into.data() < memory.data() || read.into.data() >= memory.data() + memory.size();
    });
  };
  EXPECT_EQ(bounced(), 3);
  finish_all();
  EXPECT_EQ(only_done().status, DoneStatus::ok);
  EXPECT_EQ(agent_->counts().read.reads, 8u);
  world_->expect_landed(message, 8);
}

TEST_F(PackedReads, OneReadLeavesRoomForOthersInTheBounceBuffer) {
  std::vector<ExtentRef> table;
  for (uint64_t i = 0; i < 64; ++i) table.push_back({.offset = i * 1024, .bytes = 1024});
  build(table, 64 * 1024, {}, 16, 32);
  std::vector<uint32_t> all(64);
  std::iota(all.begin(), all.end(), 0);
  const Message message = submit(world_->read(all));
  ASSERT_EQ(device_->started.size(), 8u);
  for (const DeviceRead& read : device_->started) EXPECT_EQ(read.into.size(), 2 * kBlock);
  finish_all();
  EXPECT_EQ(only_done().status, DoneStatus::ok);
  world_->expect_landed(message, 64);
}

TEST_F(PackedReads, WhatDoesNotFitTheBounceBufferIsInvalid) {
  build({{.offset = 64, .bytes = 1024}, {.offset = kBlock, .bytes = 3 * kBlock + 64}}, 8 * kBlock, {}, 3);
  submit(world_->read({0, 1}));
  finish_all();
  const Done done = only_done();
  EXPECT_EQ(done.status, DoneStatus::invalid_argument);
  EXPECT_EQ(done.first_bad, 1u);
  EXPECT_EQ(done.n_done, 1u);
}

TEST_F(PackedReads, CancelledWhileItWaitsForTheBounceBuffer) {
  build(three_and_one(), 41 * kBlock, {}, 2);
  const Message first = submit(world_->read({2}));
  const Message second = submit(world_->read({0, 3}));
  EXPECT_EQ(device_->started.size(), 1u);
  submit(world_->about(Op::cancel, second.id));
  std::vector<Done> done(8);
  done.resize(agent_->poll(done));
  ASSERT_EQ(done.size(), 2u);
  for (const Done& one : done) {
    EXPECT_EQ(one.status, one.id == second.id ? DoneStatus::cancelled : DoneStatus::ok);
  }
  finish_all();
  EXPECT_EQ(only_done().id, first.id);
  world_->expect_landed(first, 1);
  world_->expect_landed(second, 0);
  // The whole buffer is free again.
  submit(world_->read({2, 3}));
  finish_all();
  EXPECT_EQ(only_done().status, DoneStatus::ok);
}

// Reads that had started land; the others do not.
TEST_F(PackedReads, CancelledInTheMiddle) {
  build(three_and_one(), 41 * kBlock, {}, 2, 1);
  const Message message = submit(world_->read({3, 1, 0}));
  EXPECT_THAT(started_offsets(), ElementsAre(0));
  const Message cancel = submit(world_->about(Op::cancel, message.id));
  EXPECT_EQ(only_done().n_done, 1u);
  finish_all();
  const Done done = only_done();
  EXPECT_EQ(done.status, DoneStatus::cancelled);
  EXPECT_EQ(done.n_done, 2u);
  EXPECT_EQ(done.bytes, 2048u);
  world_->release(cancel);
}

// ---- beside a naive reader

struct Naive {
  DoneStatus status = DoneStatus::ok;
  uint32_t first_bad = 0;
  uint32_t n_done = 0;
};

// Reads each extent separately, in the blocks that contain it.
Naive read_alone(FlashWorld& world, const std::vector<uint32_t>& extents, const BadPlace& place) {
  Naive naive;
  for (uint32_t i = 0; i < extents.size(); ++i) {
    const ExtentRef& extent = world.table()[extents[i]];
    const uint64_t begin = extent.offset / kBlock * kBlock;
    const uint64_t end = (extent.offset + extent.bytes + kBlock - 1) / kBlock * kBlock;
    if (begin >= place.end || end <= place.begin) {
      ++naive.n_done;
    } else if (naive.status == DoneStatus::ok) {
      naive.status = DoneStatus::io_error;
      naive.first_bad = i;
    }
  }
  return naive;
}

TEST(PackedReadsBesideANaiveReader, FindTheSame) {
  uint64_t joined = 0;
  uint32_t failed = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool blocks = seed % 5 == 0;
    FlashWorld world(seed, 64, blocks ? FlashWorld::Packing::blocks : FlashWorld::Packing::packed);
    Random& random = world.random();
    BadPlace place;
    const auto file_blocks = static_cast<uint32_t>(world.content().size() / kBlock);
    if (seed % 4 != 0) {
      place.begin = kBlock * random.below(file_blocks);
      place.end = place.begin + kBlock;
      place.times = BadPlace::kForever;
    }
    auto inner = open_device(world.path(), {.kind = seed % 2 == 0 ? DeviceKind::pread : DeviceKind::automatic,
                                            .depth = 1 + random.below(8)});
    ASSERT_TRUE(inner.ok()) << inner.error().line();
    auto bounce = BounceBuffer::create(kBlock * (5 + random.below(300)));
    ASSERT_TRUE(bounce.ok());
    const WallClock clock;
    FlashAgent agent(FlashWorld::kAgent, world.pools(), clock,
                     std::make_unique<BadPlaceDevice>(std::move(*inner), place), world.table(),
                     {.max_read_bytes = kBlock * (1 + random.below(64)),
                      .gap_bytes = kBlock * random.below(6),
                      .prefer_bounce = random.below(2) == 0},
                     std::move(*bounce));
    for (int round = 0; round < 10; ++round) {
      std::vector<uint32_t> extents;
      for (uint32_t n = 1 + random.below(blocks ? 12 : 24); n > 0; --n) extents.push_back(random.below(64));
      const Message message = world.read(extents, Priority::demand, [&](size_t) { return random.below(3); });
      ASSERT_EQ(agent.submit(message, world.payload(message)), Submit::ok);
      Done done;
      while (agent.poll({&done, 1}) == 0) agent.drive();
      const Naive naive = read_alone(world, extents, place);
      EXPECT_EQ(done.status, naive.status);
      EXPECT_EQ(done.n_done, naive.n_done);
      EXPECT_EQ(done.first_bad, naive.first_bad);
      world.expect_landed(message, naive.status == DoneStatus::ok ? naive.n_done : naive.first_bad);
      world.release(message);
      failed += naive.status != DoneStatus::ok ? 1 : 0;
    }
    joined += agent.counts().read.joined;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(joined, 1000u);
  EXPECT_GT(failed, 10u);
}

}  // namespace
}  // namespace tierd
