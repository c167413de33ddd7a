// Both devices over a real file, and calls that the system refuses.
#include "tiers/flash/device.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>

#include "tests/flash/flash_world.h"
#include "tests/refuse_calls.h"

namespace tierd {
namespace {

class Devices : public testing::TestWithParam<DeviceKind> {
 protected:
  std::unique_ptr<BlockDevice> open(const std::string& path, uint32_t depth) {
    auto device = open_device(path, {.kind = GetParam(), .depth = depth});
    EXPECT_TRUE(device.ok()) << device.error().line();
    return std::move(device).value();
  }
  static bool readable(const BlockDevice& device, int milliseconds) {
    pollfd ready = {.fd = device.wait_fd(), .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, milliseconds) == 1;
  }
  static std::vector<DeviceDone> await(BlockDevice& device, size_t n, size_t room = 8) {
    std::vector<DeviceDone> all;
    std::vector<DeviceDone> done(room);
    while (all.size() < n) {
      if (!readable(device, 60'000)) {
        ADD_FAILURE() << "no read finished";
        break;
      }
      const size_t got = device.poll(done);
      all.insert(all.end(), done.begin(), done.begin() + static_cast<ptrdiff_t>(got));
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Devices, testing::Values(DeviceKind::io_uring, DeviceKind::pread),
                         [](const auto& kind) {
                           return std::string(kind.param == DeviceKind::pread ? "pread" : "io_uring");
                         });

TEST_P(Devices, ReadsTheRightBytesIntoPinnedAndOtherMemory) {
  for (const bool pin : {false, true}) {
    FlashWorld world(21);
    const auto device = open(world.path(), 8);
    if (pin) device->register_memory(world.memory().first(16 * kBlock));  // half of the reads are outside
    const AlignedMemory outside = aligned_memory(16 * kBlock);
    Random random(21);
    for (int round = 0; round < 50; ++round) {
      std::map<uint64_t, DeviceRead> reads;
      for (uint64_t i = 0; i < 8; ++i) {
        std::byte* base = i % 2 != 0 ? outside.get() : world.memory().data();
        const DeviceRead read = {
            .token = i,
            .offset = kBlock * random.below(static_cast<uint32_t>(world.content().size() / kBlock - 2)),
            .into = {base + 2 * kBlock * i, kBlock * (1 + random.below(2))}};
        ASSERT_TRUE(device->push(read));
        reads[i] = read;
      }
      EXPECT_FALSE(device->push(reads[0])) << "more than its depth";
      device->flush();
      for (const DeviceDone& done : await(*device, 8)) {
        const DeviceRead read = reads.extract(done.token).mapped();
        ASSERT_EQ(done.result, static_cast<int32_t>(read.into.size()));
        EXPECT_EQ(std::memcmp(read.into.data(), world.content().data() + read.offset, read.into.size()), 0);
      }
      EXPECT_TRUE(reads.empty());
    }
  }
}

TEST_P(Devices, StaysReadableUntilEverythingIsPolled) {
  FlashWorld world(22);
  const auto device = open(world.path(), 4);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(device->push({.token = i, .offset = 0, .into = world.memory().subspan(i * kBlock, kBlock)}));
  }
  std::vector<DeviceDone> done(1);
  EXPECT_EQ(device->poll(done), 0u) << "started before the flush";
  EXPECT_FALSE(readable(*device, 0));
  device->flush();
  EXPECT_EQ(await(*device, 4, 1).size(), 4u);
  // A late signal is consumed after a few polls.
  for (int i = 0; i < 32; ++i) EXPECT_EQ(device->poll(done), 0u);
  EXPECT_FALSE(readable(*device, 0));
}

TEST_P(Devices, ReportsTheEndOfTheFile) {
  FlashWorld world(23);
  const auto device = open(world.path(), 2);
  const uint64_t size = world.content().size();
  ASSERT_TRUE(device->push({.token = 0, .offset = size - kBlock, .into = world.memory().first(2 * kBlock)}));
  ASSERT_TRUE(device->push({.token = 1, .offset = size, .into = world.memory().subspan(2 * kBlock, kBlock)}));
  device->flush();
  for (const DeviceDone& done : await(*device, 2)) EXPECT_EQ(done.result, done.token == 0 ? 4096 : 0);
}

TEST_P(Devices, MayGoWithReadsInFlight) {
  FlashWorld world(24);
  for (int round = 0; round < 20; ++round) {
    const auto device = open(world.path(), 16);
    for (uint64_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(
          device->push({.token = i, .offset = 0, .into = world.memory().subspan(i * kBlock, kBlock)}));
      if (i == 11) device->flush();
    }
  }
}

TEST_P(Devices, OpenNamesWhatIsWrong) {
  const DeviceOptions options = {.kind = GetParam()};
  const auto missing = open_device("/no/such/store", options);
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_NE(missing.error().line().find("/no/such/store"), std::string::npos);
  EXPECT_EQ(open_device(testing::TempDir(), options).code(), Code::io_error);
  FlashWorld world(25);
  EXPECT_EQ(open_device(world.path(), {.kind = GetParam(), .depth = 0}).code(), Code::invalid_argument);
}

// ---- refusals, each forced in a child process

// Limits the memory that this process may lock to `bytes`, as for an ordinary user.
void limit_locking(rlim_t bytes) {
  const rlimit limit = {bytes, bytes};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) std::_Exit(10);
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct caps[2] = {};
  if (::syscall(SYS_capget, &header, caps) != 0) std::_Exit(11);
  caps[CAP_IPC_LOCK / 32].effective &= ~(1u << (CAP_IPC_LOCK % 32));
  if (::syscall(SYS_capset, &header, caps) != 0) std::_Exit(12);
}

// Reads one block. Returns the exit status: whether the bytes were right.
int read_one(BlockDevice& device, FlashWorld& world) {
  if (!device.push({.token = 5, .offset = kBlock, .into = world.memory().first(kBlock)})) return 30;
  device.flush();
  DeviceDone done;
  while (device.poll({&done, 1}) == 0) {
  }
  if (done.token != 5 || done.result != 4096) return 31;
  return std::memcmp(world.memory().data(), world.content().data() + kBlock, kBlock) == 0 ? 0 : 32;
}

TEST(DeviceRefusalDeathTest, SmallMemlockReadsWithoutPinning) {
  FlashWorld world(31);
  world.path();
  EXPECT_EXIT(
      {
        limit_locking(1 << 20);  // new kernels charge the rings too
        auto device = open_device(world.path(), {.kind = DeviceKind::io_uring, .depth = 4});
        if (!device.ok()) std::_Exit(40);
        device.value()->register_memory(world.memory());
        if (device.value()->registered()) std::_Exit(41);
        std::_Exit(read_one(**device, world));
      },
      testing::ExitedWithCode(0), "");
}

TEST(DeviceRefusalDeathTest, NoMemlockReadsAllTheSame) {
  FlashWorld world(34);
  world.path();
  EXPECT_EXIT(
      {
        limit_locking(0);
        auto device = open_device(world.path(), {});
        if (!device.ok()) std::_Exit(45);
        device.value()->register_memory(world.memory());
        if (device.value()->registered()) std::_Exit(46);
        std::_Exit(read_one(**device, world));
      },
      testing::ExitedWithCode(0), "");
}

TEST(DeviceRefusalDeathTest, IoUringRefusedReadsWithPread) {
  FlashWorld world(32);
  world.path();
  EXPECT_EXIT(
      {
        refuse_calls({SYS_io_uring_setup}, EPERM);
        if (open_device(world.path(), {.kind = DeviceKind::io_uring}).code() != Code::unsupported)
          std::_Exit(50);
        auto device = open_device(world.path(), {});
        if (!device.ok() || device.value()->name() != "pread") std::_Exit(51);
        std::_Exit(read_one(**device, world));
      },
      testing::ExitedWithCode(0), "");
}

// A sandbox may allow one call and not another, or none that makes an eventfd.
TEST(DeviceRefusalDeathTest, ARingThatMayNotBeEnteredReadsWithPread) {
  FlashWorld world(35);
  world.path();
  for (const long refused : {SYS_io_uring_enter, SYS_io_uring_register, SYS_eventfd2}) {
    EXPECT_EXIT(
        {
          refuse_calls({refused}, EPERM);
          if (open_device(world.path(), {.kind = DeviceKind::io_uring}).code() != Code::unsupported)
            std::_Exit(50);
          auto device = open_device(world.path(), {});
          if (!device.ok() || device.value()->name() != "pread") std::_Exit(51);
          std::_Exit(read_one(**device, world));
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST(Device, PinsWhereItMay) {
  FlashWorld world(33);
  auto device = open_device(world.path(), {.kind = DeviceKind::io_uring, .depth = 4});
  ASSERT_TRUE(device.ok());
  device.value()->register_memory(world.memory().first(kBlock));
  EXPECT_TRUE(device.value()->registered());
}

}  // namespace
}  // namespace tierd
