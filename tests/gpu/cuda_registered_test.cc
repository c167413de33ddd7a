// Registers the DRAM tier's memory with the double, which is stricter than a driver: when pieces are
// registered and unregistered, where registration fails, and the order of destruction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <optional>

#include "tests/dram/pruned_neurons.h"
#include "tests/gpu/cuda_on_host/double.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/one_neuron.h"
#include "tests/gpu/transfer_world.h"
#include "tiers/dram/dram_agent.h"
#include "tiers/gpu/cuda/cuda_device.h"
#include "tiers/gpu/cuda/expansion.h"

namespace tierd::cuda {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kArena = 80 * kMiB, kStaging = 8 * kMiB;
constexpr MemoryId kDram = 1, kDevice = 2;

class CudaRegistered : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  void TearDown() override {
    world_.reset();
    dram_.reset();
    EXPECT_EQ(on_host::registered_bytes(), 0U);
  }
  void start(const on_host::Behaviour& behaviour) {
    world_.reset();
    dram_.reset();
    on_host::behave(behaviour);
    pools_ = {};
    auto made = DramAgent::create(
        {.number = 1, .memory = kDram, .arena_bytes = kArena, .staging_bytes = kStaging}, pools_,
        plan_of_one_neuron(), best_kernels(), std::make_unique<Team>(Team::Options{.workers = 1}));
    ASSERT_TRUE(made.ok()) << made.error().line();
    dram_ = std::move(*made);
    world_.emplace(pools_);
  }
  std::span<std::byte> memory() const { return pools_.memory(kDram); }
  // Makes these ranges of the arena in use and fills them with new bytes.
  void resize(const std::vector<PageRange>& ranges) {
    std::vector<Unit> units;
    for (const auto& [begin, end] : ranges)
      units.push_back({static_cast<uint32_t>(begin / kPlaceUnit), static_cast<uint32_t>(end / kPlaceUnit)});
    Message message;
    message.op = Op::resize;
    message.memory = kDram;
    ASSERT_EQ(dram_->submit(message, {.units = units}), Submit::ok);
    dram_->drive();
    Done done;
    ASSERT_EQ(dram_->poll({&done, 1}), 1U);
    ASSERT_EQ(done.status, DoneStatus::ok);
    for (const auto& [begin, end] : ranges) fill_with_noise(memory().subspan(begin, end - begin), ++seed_);
  }
  testing::AssertionResult moves(const PageRange& range, uint64_t bytes, size_t slots) {
    return world_->moves(memory(), slots_in(memory(), range, bytes, slots, random_), bytes);
  }
  uint64_t gathered() const { return world_->counts().gathered; }

  PoolTable pools_;
  std::unique_ptr<DramAgent> dram_;
  std::optional<TransferWorld> world_;
  Random random_{5};
  uint64_t seed_ = 0;
};

TEST_F(CudaRegistered, NothingIsRegisteredBeforeItIsMovedFrom) {
  EXPECT_EQ(on_host::registered_bytes(), 0U);
  resize({{0, kArena}});
  EXPECT_EQ(on_host::registered_bytes(), 0U);
  fill_with_noise(memory().subspan(kArena, kStaging), 1);
  EXPECT_TRUE(moves({kArena, kArena + kStaging}, 6912, 20));
  EXPECT_LE(on_host::registered_bytes(), kStaging) << "the staging is registered without the arena";
  EXPECT_TRUE(moves({0, 64}, 64, 1));
  EXPECT_LE(on_host::registered_bytes(), kStaging + RegisteredMemory::kPieceBytes);
  EXPECT_EQ(gathered(), 0U);
}

// Registering commits pages, so nothing is registered until the first resize says which ranges are in use.
TEST_F(CudaRegistered, AnArenaOfWhichNobodyHasSpokenIsGathered) {
  EXPECT_TRUE(moves({0, kArena}, kMiB, 4));
  EXPECT_EQ(world_->counts().read_in_place, 0U);
  EXPECT_EQ(on_host::registered_bytes(), 0U);
}

// The double ends the test when registered pages are returned to the system (cuda_on_host/given_back.cc).
TEST_F(CudaRegistered, PagesAreForgottenBeforeTheyGoAndRegisteredWhenTheyComeBack) {
  const PageRange all{0, kArena}, head{0, 5 * kMiB + 320}, tail{33 * kMiB + 64, 78 * kMiB - 64};
  for (int round = 0; round < 3; ++round) {
    resize({all});
    EXPECT_TRUE(moves(all, kMiB, 16));
    const uint64_t before = on_host::registered_bytes();
    EXPECT_GE(before, kArena - 2 * RegisteredMemory::kPieceBytes);
    resize({head, tail});
    EXPECT_LT(on_host::registered_bytes(), before);
    EXPECT_TRUE(moves(head, 6912, 60));
    EXPECT_TRUE(moves(tail, kMiB, 16));
    EXPECT_LE(on_host::registered_bytes(), 5 * kMiB + 4096 + 45 * kMiB + 4096);
    resize({});
    EXPECT_EQ(on_host::registered_bytes(), 0U);
  }
  EXPECT_EQ(gathered(), 0U);
}

// A resize with the same ranges unregisters only their ends, because a part of a huge page may get other
// pages.
TEST_F(CudaRegistered, WhatStaysIsNotRegisteredAnew) {
  const PageRange range{kMiB, kArena - kMiB};
  resize({range});
  EXPECT_TRUE(moves(range, 5 * kMiB, 4));
  for (uint64_t at = range.begin; at < range.end; at += kMiB) EXPECT_TRUE(moves({at, at + 64}, 64, 1));
  EXPECT_EQ(on_host::registered_bytes(), kArena - 2 * kMiB);
  resize({range});
  EXPECT_EQ(on_host::registered_bytes(), kArena - 4 * kMiB);
  EXPECT_TRUE(moves(range, 5 * kMiB, 4));
}

TEST_F(CudaRegistered, RangesMayShareAPage) {
  resize({{64, 8'000}, {8'064, 12'288}, {12'288, 12'352}});
  EXPECT_TRUE(moves({64, 8'000}, 64, 30));
  EXPECT_TRUE(moves({8'064, 12'288}, 64, 30));
  EXPECT_TRUE(moves({12'288, 12'352}, 64, 1));
  EXPECT_EQ(on_host::registered_bytes(), 4 * 4096U);
  EXPECT_EQ(gathered(), 0U);
}

// As much as possible is registered. The rest goes through blocks, and one line says so.
TEST_F(CudaRegistered, WhatCannotBeRegisteredIsGathered) {
  for (const uint64_t lockable : {uint64_t{0}, 40 * kMiB}) {
    start({.lockable_bytes = lockable});
    testing::internal::CaptureStderr();
    for (int round = 0; round < 2; ++round) {
      resize({{0, kArena}});
      EXPECT_TRUE(moves({0, kArena}, kMiB, 16));
      EXPECT_TRUE(moves({0, kArena}, 5 * kMiB, 4));
    }
    EXPECT_THAT(
        testing::internal::GetCapturedStderr(),
        "tiers.gpu: memory of the host cannot be registered with the device (cudaErrorMemoryAllocation: an "
        "error of the double); neurons are moved from there through pinned blocks, which is slower\n");
    EXPECT_GT(gathered(), 0U);
    EXPECT_EQ(world_->counts().read_in_place != 0, lockable != 0);
    EXPECT_LE(on_host::registered_bytes(), lockable);
  }
}

// The table of pools outlives agent and device, which may end in any order.
TEST_F(CudaRegistered, AgentAndDeviceMayEndInAnyOrder) {
  resize({{0, kArena}});
  EXPECT_TRUE(moves({0, kArena}, kMiB, 8));
  EXPECT_NE(on_host::registered_bytes(), 0U);
  dram_.reset();
  EXPECT_EQ(on_host::registered_bytes(), 0U);
  start({});
  resize({{0, kArena}});
  EXPECT_TRUE(moves({0, kArena}, kMiB, 8));
  world_.reset();
  EXPECT_EQ(on_host::registered_bytes(), 0U);
  resize({});
  // A device created later learns the ranges that are already in use.
  resize({{0, kArena}});
  world_.emplace(pools_);
  EXPECT_TRUE(moves({0, kArena}, kMiB, 8));
  EXPECT_EQ(gathered(), 0U);
}

TEST_F(CudaRegistered, PagesThatAreBeingReadDoNotGo) {
  start({.late = 3});
  resize({{0, kArena}});
  EXPECT_TRUE(moves({0, kArena}, kMiB, 8));
  EXPECT_DEATH(
      {
        while (world_->begin(memory(), kMiB)) {
        }
        resize({});
      },
      "pages are unregistered while a move reads from them");
}

// A launch fails while the next group of an expanding move is fetched. That group lands, and then nothing
// reads the host's memory.
TEST_F(CudaRegistered, AnExpansionThatFailsEndsItsReads) {
  const PrunedNeurons compressed(Columns{130, 72}, true, Random(4));
  ComputePlan plan = plan_of_pruned(compressed, false, 1);
  plan.editions.push_back(compressed.encodings);
  plan.made = {std::nullopt, MadeNeurons{.of = 0, .site = 0}};
  start({.late = 3, .launch_fails = 5});  // a group fetches, counts and expands
  resize({{0, kMiB}});
  {
    Expansion expansion(1024);
    ASSERT_EQ(expansion.allocate(plan), cudaSuccess);
    RegisteredMemory registered(pools_, 0, "tiers.gpu");
    Transfer transfer(registered);
    ASSERT_EQ(transfer.create(), cudaSuccess);
    Stream stream;
    ASSERT_EQ(stream.create(), cudaSuccess);
    const DeviceArray<std::byte> device(std::vector<std::byte>(130 * 192));
    std::vector<Unit> units;
    std::vector<uint32_t> neurons;
    for (uint32_t i = 0; i < 130; ++i) {
      units.push_back({3 * i, 3 * i});
      neurons.push_back(i);
    }
    TeamWork host(best_kernels(), std::make_unique<Team>(Team::Options{.workers = 1}));
    ASSERT_EQ(expansion.begin({.edition = 1,
                               .units = units,
                               .neurons = neurons,
                               .bytes = 192,
                               .source = memory().data(),
                               .memory = device.get()},
                              host, stream.get()),
              cudaSuccess);
    bool queued = false;
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && !queued) error = expansion.advance(transfer, stream.get(), queued);
    EXPECT_EQ(error, cudaErrorLaunchOutOfResources);
    (void)cudaGetLastError();
    const uint32_t launched = on_host::launches();
    expansion.stop(transfer);
    while (!queued) ASSERT_EQ(expansion.advance(transfer, stream.get(), queued), cudaSuccess);
    EXPECT_EQ(on_host::launches(), launched);
    resize({});  // checks that nothing is being read
  }
}

// A device that moves from the DRAM tier's memory, driven as by the agent.
class CudaRegisteredDevice : public CudaRegistered {
 protected:
  void make(const on_host::Behaviour& behaviour) {
    start(behaviour);
    world_.reset();
    resize({{0, kArena}});
    auto made = CudaDevice::create(
        {.number = 2, .table = "tiers.gpu", .memory = kDevice, .arena_bytes = kArena, .staging_bytes = 4096},
        pools_, clock_, plan_of_one_neuron(),
        std::make_unique<TeamWork>(best_kernels(), std::make_unique<Team>(Team::Options{})));
    ASSERT_TRUE(made.ok()) << made.error().line();
    device_ = std::move(*made);
  }
  void TearDown() override {
    device_.reset();
    CudaRegistered::TearDown();
  }
  void begin() {
    DeviceRequest request;
    request.message.op = Op::move;
    request.message.from = kDram;
    request.message.memory = kDevice;
    request.message.unit_bytes = kMiB;
    request.payload.units = units_;
    device_->begin(Device::Engine::copy, request);
  }
  Done end() {
    for (;;) {
      if (const auto done = device_->over(Device::Engine::copy)) return *done;
    }
  }

  const std::vector<Unit> units_ = {{0, 64 << 10}, {1 << 20, 0}, {31 << 14, 32 << 10}};
  ManualClock clock_;
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(CudaRegisteredDevice, OneLaunchBringsAMove) {
  for (const uint64_t late : {0, 4}) {
    make({.late = late});
    begin();
    const Done done = end();
    EXPECT_EQ(done.status, DoneStatus::ok);
    EXPECT_EQ(done.bytes, 3 * kMiB);
    EXPECT_EQ(on_host::launches(), 1U);
    EXPECT_EQ(device_->counts().move.read_in_place, 3 * kMiB);
    EXPECT_EQ(device_->counts().move.gathered, 0U);
  }
}

TEST_F(CudaRegisteredDevice, ALaunchThatFailsReadsNothing) {
  make({.launch_fails = 1});
  testing::internal::CaptureStderr();
  begin();
  EXPECT_EQ(end().status, DoneStatus::internal);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cudaErrorLaunchOutOfResources"));
  resize({});
  EXPECT_EQ(on_host::registered_bytes(), 0U);
}

// The pages that a lost device was reading may be returned.
TEST_F(CudaRegisteredDevice, ADeviceThatIsLostReadsNothingMore) {
  for (uint32_t look = 1; look < 4; ++look) {
    make({.late = look, .lost_at_look = look});
    testing::internal::CaptureStderr();
    begin();
    const DoneStatus status = end().status;
    EXPECT_TRUE(status == DoneStatus::lost || status == DoneStatus::ok);
    testing::internal::GetCapturedStderr();
    dram_.reset();
    EXPECT_EQ(on_host::registered_bytes(), 0U);
    device_.reset();
    on_host::behave({});
  }
}

// The double refuses each misuse, so the tests above would notice it.
class CudaDoubleDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    on_host::behave({});
    at_ = mmap(nullptr, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_EQ(cudaHostRegister(at_, 2 * 4096, kFlags), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaHostUnregister(at_), cudaSuccess);
    munmap(at_, 4 * 4096);
  }
  std::byte* page(size_t number) const { return static_cast<std::byte*>(at_) + number * 4096; }

  static constexpr unsigned kFlags = cudaHostRegisterPortable | cudaHostRegisterMapped;
  void* at_ = nullptr;
};

TEST_F(CudaDoubleDeathTest, RefusesWhatIsRegisteredTwiceOrNotAtAll) {
  EXPECT_DEATH((void)cudaHostRegister(at_, 2 * 4096, kFlags), "registered twice");
  EXPECT_DEATH((void)cudaHostRegister(page(1), 2 * 4096, kFlags), "registered twice");
  EXPECT_DEATH((void)cudaHostRegister(page(2) + 64, 4096, kFlags), "not whole pages");
  EXPECT_DEATH((void)cudaHostUnregister(page(1)), "is not registered");
  EXPECT_DEATH(std::exit(0), "registered when the program ends");
}

TEST_F(CudaDoubleDeathTest, RefusesReadsOfWhatIsNotRegistered) {
  void* there = nullptr;
  ASSERT_EQ(cudaHostGetDevicePointer(&there, at_, 0), cudaSuccess);
  const auto* const mapped = static_cast<const std::byte*>(there);
  EXPECT_EQ(on_host::mapped(mapped + 8176, 16), page(2) - 16);
  EXPECT_DEATH((void)on_host::mapped(mapped + 8176, 32), "that is not registered");
  EXPECT_DEATH((void)on_host::mapped(mapped + 8192, 16), "that is not registered");
}

TEST_F(CudaDoubleDeathTest, RefusesThatPagesGo) {
  EXPECT_EQ(madvise(page(2), 2 * 4096, MADV_DONTNEED), 0);
  EXPECT_DEATH(madvise(page(1), 2 * 4096, MADV_DONTNEED), "is given back");
  EXPECT_DEATH(munmap(at_, 4 * 4096), "is given back");
}

}  // namespace
}  // namespace tierd::cuda
