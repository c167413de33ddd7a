// With any faults of the device, each read ends with the right bytes or the right error.
#include <gtest/gtest.h>

#include <map>

#include "core/kernel/post/clocks.h"
#include "tests/flash/fault_device.h"
#include "tests/flash/flash_world.h"
#include "tests/flash/late_copies.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

struct FaultCase {
  const char* name;
  DeviceKind kind;
  Faults faults;
  bool verify = true;  // off: no checksum hides a wrong read
  bool apart = false;  // the memory is apart, and a copy in 20 fails
};

std::vector<FaultCase> fault_cases() {
  std::vector<FaultCase> cases;
  for (const DeviceKind kind : {DeviceKind::io_uring, DeviceKind::pread}) {
    const bool uring = kind == DeviceKind::io_uring;
    const auto add = [&](const char* uring_name, const char* pread_name, const Faults& faults, bool verify,
                         bool apart = false) {
      cases.push_back({uring ? uring_name : pread_name, kind, faults, verify, apart});
    };
    add("uring_none", "pread_none", {}, true);
    add("uring_short", "pread_short", {.short_read = 60}, false);
    add("uring_empty", "pread_empty", {.short_read = 20, .empty = 20}, false);
    add("uring_interrupted", "pread_interrupted", {.interrupted = 40}, false);
    add("uring_again", "pread_again", {.again = 30}, false);
    add("uring_io_error", "pread_io_error", {.short_read = 30, .io_error = 10}, false);
    add("uring_invalid", "pread_invalid", {.short_read = 50, .invalid = 20}, false);
    add("uring_late", "pread_late", {.late = 60}, true);
    add("uring_unregistered", "pread_unregistered", {.registration_refused = true}, true);
    add("uring_all", "pread_all",
        {.short_read = 20,
         .empty = 5,
         .interrupted = 10,
         .again = 5,
         .io_error = 3,
         .invalid = 5,
         .late = 40},
        true);
    add("uring_apart", "pread_apart", {}, true, true);
    add("uring_apart_all", "pread_apart_all",
        {.short_read = 20, .empty = 5, .interrupted = 10, .again = 5, .io_error = 3, .late = 40}, false,
        true);
  }
  return cases;
}

class FlashFault : public testing::TestWithParam<FaultCase> {};
INSTANTIATE_TEST_SUITE_P(All, FlashFault, testing::ValuesIn(fault_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

void expect_right(const FlashWorld& world, const Message& message, const Done& done, const FaultCase& test,
                  bool cancelled) {
  const Faults& faults = test.faults;
  const auto n = static_cast<uint32_t>(world.payload(message).units.size());
  switch (done.status) {
    case DoneStatus::ok:
      EXPECT_EQ(done.n_done, n);
      world.expect_landed(message, n);
      break;
    case DoneStatus::io_error:
      EXPECT_TRUE((done.error == EIO && faults.io_error != 0) ||
                  (done.error == EINVAL && faults.invalid != 0))
          << "errno " << done.error;
      EXPECT_LT(done.first_bad, n);
      EXPECT_LT(done.n_done, n);
      EXPECT_GE(done.n_done, done.first_bad);
      world.expect_landed(message, done.first_bad);
      break;
    case DoneStatus::cancelled:
      EXPECT_TRUE(cancelled);
      EXPECT_LT(done.n_done, n);
      world.expect_landed(message, 0);
      break;
    case DoneStatus::internal:  // of a copy
      EXPECT_TRUE(test.apart);
      EXPECT_EQ(done.error, 17);
      EXPECT_LT(done.first_bad, n);
      world.expect_landed(message, done.first_bad);
      break;
    default:
      FAIL() << "status " << static_cast<int>(done.status);
  }
}

// Whole blocks land directly; packed extents use a bounce buffer smaller than a message.
TEST_P(FlashFault, RightBytesOrTheRightError) {
  const FaultCase& test = GetParam();
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const bool packed = seed % 2 == 0;
    SCOPED_TRACE("seed " + std::to_string(seed));
    FlashWorld world(seed, 64, packed ? FlashWorld::Packing::packed : FlashWorld::Packing::blocks);
    auto bounce = BounceBuffer::create(packed || test.apart ? uint64_t{64 * 1024} << (seed / 2 % 4) : 0);
    ASSERT_TRUE(bounce.ok());
    auto inner = open_device(world.path(), {.kind = test.kind, .depth = 4});
    ASSERT_TRUE(inner.ok()) << inner.error().line();
    auto device = std::make_unique<FaultDevice>(std::move(inner).value(), test.faults, seed);
    device->register_memory(world.memory());
    const FaultDevice& watched = *device;
    const WallClock clock;
    LateCopies apart(world.memory(), seed, 5);
    if (!test.apart) apart.release();
    FlashAgent agent(FlashWorld::kAgent, world.pools(), clock, std::move(device), world.table(),
                     {.credits = 16,
                      .max_read_bytes = 64 * 1024,
                      .gap_bytes = kBlock * (seed / 2),
                      .verify = test.verify,
                      .apart = test.apart ? &apart : nullptr},
                     std::move(*bounce));

    std::map<uint32_t, Message> open;  // by generation
    std::map<uint32_t, bool> cancelled;
    std::vector<Done> done(5);
    uint32_t submitted = 0;
    while (submitted < 200 || !open.empty()) {
      if (submitted < 200 && open.size() < 16) {
        Message message = world.random_read();
        if (!open.empty() && world.random().below(8) == 0) {
          world.release(message);
          const Message& target = open.begin()->second;
          message = world.about(world.random().below(2) != 0 ? Op::cancel : Op::raise, target.id);
          cancelled[target.id.generation] |= message.op == Op::cancel;
        }
        ASSERT_EQ(agent.submit(message, world.payload(message)), Submit::ok);
        open.emplace(message.id.generation, message);
        ++submitted;
      }
      if (world.random().below(2) == 0) agent.drive();
      for (const Done& one : std::span(done).first(agent.poll(done))) {
        const auto found = open.find(one.id.generation);
        ASSERT_NE(found, open.end()) << "completed twice or never submitted";
        if (found->second.op == Op::read) {
          expect_right(world, found->second, one, test, cancelled[one.id.generation]);
        } else {
          EXPECT_EQ(one.status, DoneStatus::ok);
        }
        world.release(found->second);
        open.erase(found);
      }
    }
    EXPECT_LE(watched.deepest(), 4u);
    const ReadCounts counters = agent.counts().read;
    EXPECT_GT(counters.joined, 0u);
    EXPECT_EQ(test.faults.short_read != 0, counters.short_reads > 0);
    EXPECT_TRUE(counters.retries > 0 || test.faults.interrupted + test.faults.again == 0);
    EXPECT_EQ(test.faults.io_error + test.faults.invalid + apart.failed() != 0, counters.failed_extents > 0);
    EXPECT_EQ(counters.verified_bytes,
              test.verify && apart.failed() == 0 ? counters.bytes : counters.verified_bytes);
    EXPECT_EQ(apart.most() > 1, test.apart) << "copies go on side by side";
    EXPECT_FALSE(agent.waiting());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tierd
