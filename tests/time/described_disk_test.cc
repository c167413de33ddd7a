// Times are computed by hand; the comment of each test has its timeline.
#include "core/time/described_disk.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tierd {
namespace {

// 4 KiB take 10 us of the disk's time and 64 KiB 40 us; a single read takes 100 us; checks run at 1 GB/s.
DiskDescription disk() {
  return {.reads = ReadCurve({{4096, 4096 / 10e-6}, {65536, 65536 / 40e-6}}),
          .latency_ns = 100'000,
          .check_rate = 1e9};
}

class DiskWorld {
 public:
  explicit DiskWorld(uint32_t depth = 8, const DiskDescription& description = disk())
      : description_(description), disk_(nullptr, description_, depth, clock, reads, thread) {}
  bool push(uint64_t token, size_t bytes) { return push(token, bytes, bytes, 0); }
  bool push(uint64_t token, size_t bytes, uint64_t checked, uint64_t copied) {
    return disk_.push({token, 0, std::span(memory_).first(bytes), checked, copied});
  }
  // Runs virtual time. Returns "token@ns" of each read that ends.
  std::string run() {
    std::string ends;
    Waiter waiter;
    do {
      DeviceDone done[2];
      while (const size_t n = disk_.poll(done)) {
        for (size_t i = 0; i < n; ++i)
          ends += std::to_string(done[i].token) + "@" + std::to_string(clock.now_ns()) + " ";
      }
    } while (clock.wait(waiter));
    return ends;
  }
  DescribedDisk& device() { return disk_; }
  VirtualClock clock;
  VirtualThread reads;
  VirtualThread thread;

 private:
  const DiskDescription description_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 17);
  DescribedDisk disk_;
};

// The first read ends after the latency; the checks of 4096 ns follow each other.
TEST(DescribedDisk, FewReadsWaitForTheLatency) {
  DiskWorld world;
  ASSERT_TRUE(world.push(1, 4096));
  ASSERT_TRUE(world.push(2, 4096));
  EXPECT_EQ(world.run(), "") << "nothing starts before it is flushed";
  world.device().flush();
  EXPECT_EQ(world.run(), "1@104096 2@108192 ");
}

// Served one after the other: 40, 80, 120, 160 us, of which the latency hides the first two. Checks of 65536
// ns: 100 to 165.5, to 231, to 296.6, to 362.1.
TEST(DescribedDisk, ManyReadsAreBoundByTheDiskOrByTheirChecks) {
  DiskWorld world;
  for (uint64_t token = 1; token <= 4; ++token) ASSERT_TRUE(world.push(token, 65536));
  world.device().flush();
  EXPECT_EQ(world.run(), "1@165536 2@231072 3@296608 4@362144 ");
}

// Work that alternates with the disk occupies it until 300 us, so the reads end at 340 and 380 us; their
// checks follow.
TEST(DescribedDisk, ReadsWaitForWhatTakesTurnsWithThem) {
  DiskWorld world;
  EXPECT_EQ(world.reads.begin(0, 300'000), 0u);
  ASSERT_TRUE(world.push(1, 65536));
  ASSERT_TRUE(world.push(2, 65536));
  world.device().flush();
  EXPECT_EQ(world.run(), "1@405536 2@471072 ");
}

TEST(DescribedDisk, ChecksWaitForTheThread) {
  DiskWorld world;
  EXPECT_EQ(world.thread.begin(0, 300'000), 0u);
  ASSERT_TRUE(world.push(1, 4096));
  world.device().flush();
  EXPECT_EQ(world.run(), "1@304096 ");
}

// Both land at 100 us. While the thread checks the first, until 104.1 us, it gets 50 us of other work, and
// checks the second after that.
TEST(DescribedDisk, WhatTheThreadIsAskedForComesBetweenChecks) {
  DiskWorld world;
  ASSERT_TRUE(world.push(1, 4096));
  ASSERT_TRUE(world.push(2, 4096));
  world.device().flush();
  DeviceDone done[2];
  Waiter waiter;
  while (world.clock.now_ns() < 100'000) {
    EXPECT_EQ(world.device().poll(done), 0u);
    ASSERT_TRUE(world.clock.wait(waiter));
  }
  EXPECT_EQ(world.device().poll(done), 0u);
  EXPECT_EQ(world.thread.begin(100'000, 50'000), 104'096u);
  EXPECT_EQ(world.run(), "1@104096 2@158192 ");
}

// 1000 bytes of each are checked at 1 byte a ns; those of the second are also copied, at half of that rate.
TEST(DescribedDisk, OnlyWhatIsAskedForIsCheckedAndCopied) {
  DiskDescription description = disk();
  description.copy_rate = 5e8;
  DiskWorld world(8, description);
  ASSERT_TRUE(world.push(1, 4096, 1000, 0));
  ASSERT_TRUE(world.push(2, 4096, 1000, 1000));
  world.device().flush();
  EXPECT_EQ(world.run(), "1@101000 2@104000 ");
}

// A single read takes no longer than each of many, so that only the tested effect shows.
DiskDescription disk_without_latency() {
  DiskDescription description = disk();
  description.latency_ns = 0;
  return description;
}

// Returns when reads of 4 KiB end that are given at once and not checked.
std::string ends_of(uint64_t reads, const DiskDescription& description) {
  DiskWorld world(8, description);
  for (uint64_t token = 1; token <= reads; ++token) EXPECT_TRUE(world.push(token, 4096, 0, 0));
  world.device().flush();
  return world.run();
}

// The reads are given at 2, 4 and 6 us, and end at 12, 22 and 32 us.
TEST(DescribedDisk, AThreadAsksForOneAfterTheOther) {
  DiskDescription description = disk_without_latency();
  description.thread_ns = 2'000;
  EXPECT_EQ(ends_of(3, description), "1@12000 2@22000 3@32000 ");
}

// Three of five reads are a round, which ends at 30 us; the others are a round that ends at 50.
TEST(DescribedDisk, TellsOfRoundsTogether) {
  DiskDescription description = disk_without_latency();
  description.round = 3;
  EXPECT_EQ(ends_of(5, description), "1@30000 2@30000 3@30000 4@50000 5@50000 ");
}

// A read given while a round is served belongs to it; one given at its end does not.
TEST(DescribedDisk, ARoundGoesOnWhileReadsAreGiven) {
  DiskDescription description = disk_without_latency();
  description.round = 8;
  DiskWorld world(8, description);
  Waiter waiter;
  ASSERT_TRUE(world.push(1, 4096, 0, 0));
  world.device().flush();
  world.clock.at(4'000);
  ASSERT_TRUE(world.clock.wait(waiter));
  ASSERT_TRUE(world.push(2, 4096, 0, 0));
  world.device().flush();
  world.clock.at(20'000);
  while (world.clock.now_ns() < 20'000) ASSERT_TRUE(world.clock.wait(waiter));
  ASSERT_TRUE(world.push(3, 4096, 0, 0));
  world.device().flush();
  EXPECT_EQ(world.run(), "1@20000 2@20000 3@30000 ");
}

TEST(DescribedDisk, HoldsAsManyAsItIsDeep) {
  DiskWorld world(2);
  EXPECT_TRUE(world.push(1, 4096));
  EXPECT_TRUE(world.push(2, 4096));
  EXPECT_FALSE(world.push(3, 4096));
  world.device().flush();
  EXPECT_FALSE(world.push(3, 4096));
  (void)world.run();
  EXPECT_TRUE(world.push(3, 4096));
}

// Another device makes the real read when its time has come.
TEST(DescribedDisk, ADeviceCarriesItOut) {
  class Remembers final : public BlockDevice {
   public:
    explicit Remembers(std::vector<uint64_t>& offsets) : offsets_(offsets) {}
    std::string_view name() const override { return "remembers"; }
    uint32_t depth() const override { return 1; }
    bool push(const DeviceRead& read) override {
      read_ = read;
      return true;
    }
    void flush() override { offsets_.push_back(read_.offset); }
    size_t poll(std::span<DeviceDone> done) override {
      done[0] = {read_.token, -5};
      return 1;
    }
    int wait_fd() const override { return -1; }
    void register_memory(std::span<std::byte>) override {}
    bool registered() const override { return false; }

   private:
    std::vector<uint64_t>& offsets_;
    DeviceRead read_;
  };
  std::vector<uint64_t> offsets;
  const DiskDescription description = disk();
  VirtualClock clock;
  VirtualThread thread;
  VirtualThread reads;
  DescribedDisk device(std::make_unique<Remembers>(offsets), description, 4, clock, reads, thread);
  std::vector<std::byte> memory(4096);
  ASSERT_TRUE(device.push({.token = 7, .offset = 8192, .into = memory}));
  device.flush();
  EXPECT_TRUE(offsets.empty());
  Waiter waiter;
  DeviceDone done;
  while (device.poll({&done, 1}) == 0) ASSERT_TRUE(clock.wait(waiter));
  EXPECT_EQ(offsets, std::vector<uint64_t>{8192});
  EXPECT_EQ(done.token, 7u);
  EXPECT_EQ(done.result, -5) << "an error is the device's";
}

}  // namespace
}  // namespace tierd
