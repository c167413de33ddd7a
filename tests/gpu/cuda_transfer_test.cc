// Moves slots from the host to the device. Slots in registered memory are read in place, others go through
// pinned blocks, and the bytes are the same.
#include <gtest/gtest.h>

#include "tests/gpu/transfer_world.h"
#include "tiers/dram/reserved_memory.h"

namespace tierd::cuda {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kHostBytes = 72 * kMiB;  // contains two borders of pieces

class CudaTransfer : public testing::Test {
 protected:
  void SetUp() override {
    auto memory = ReservedMemory::reserve(kHostBytes);
    ASSERT_TRUE(memory.ok());
    host_ = std::move(*memory);
    fill_with_noise(host_.bytes(), 1);
    pools_.add_memory(1, host_.bytes());
  }
  void TearDown() override { pools_.keep_pages(1, {}); }

  PoolTable pools_;
  ReservedMemory host_;
  Random random_{3};
};

TEST_F(CudaTransfer, BringsTheSameBytesEitherWay) {
  struct Case {
    uint64_t bytes;  // of a slot
    size_t slots;
  };
  constexpr Case kCases[] = {{16, 3},      {64, 500},       {100, 40},          {6'912, 700},
                             {16'386, 90}, {kMiB + 64, 17}, {5 * kMiB - 28, 4}, {64 << 10, 60}};
  const PageRange all{0, kHostBytes};
  for (const bool registered : {true, false}) {
    TransferWorld world(pools_);
    pools_.keep_pages(1, registered ? std::vector{all} : std::vector<PageRange>());
    uint64_t moved = 0;
    for (const auto& [bytes, slots] : kCases) {
      const std::vector<uint32_t> from = slots_in(host_.bytes(), all, bytes, slots, random_);
      EXPECT_TRUE(world.moves(host_.bytes(), from, bytes));
      moved += from.size() * bytes;
    }
    EXPECT_EQ(world.counts().read_in_place, registered ? moved : 0);
    EXPECT_EQ(world.counts().gathered, registered ? 0 : moved);
  }
}

// A slot is as large as the largest neuron. Bytes behind the neuron's own are neither moved nor written.
TEST_F(CudaTransfer, OnlyTheBytesOfEachNeuronCome) {
  const PageRange all{0, kHostBytes}, half{0, kHostBytes / 2};
  for (const PageRange& kept : {all, half, PageRange{}}) {
    TransferWorld world(pools_);
    pools_.keep_pages(1, {kept});
    uint64_t moved = 0;
    for (const uint64_t bytes : {uint64_t{6'912}, 5 * kMiB - 64}) {
      const std::vector<uint32_t> from = slots_in(host_.bytes(), all, bytes, 4, random_);
      std::vector<uint32_t> lengths;
      for (size_t i = 0; i < from.size(); ++i)
        lengths.push_back(i == 0 ? static_cast<uint32_t>(bytes) : 64 * (1 + random_.below(bytes / 64)));
      EXPECT_TRUE(world.moves_parts(host_.bytes(), from, bytes, lengths));
      for (const uint32_t length : lengths) moved += length;
    }
    EXPECT_EQ(world.counts().read_in_place + world.counts().gathered, moved);
  }
}

// Slots in no range, or only partly in one, go through blocks.
TEST_F(CudaTransfer, AMoveMayComeBothWays) {
  TransferWorld world(pools_);
  pools_.keep_pages(1, {{5000, 3 * kMiB}, {3 * kMiB, 9 * kMiB + 1}, {40 * kMiB, 70 * kMiB}});
  for (const uint64_t bytes : {uint64_t{6'912}, kMiB}) {
    const std::vector<uint32_t> from = slots_in(host_.bytes(), {0, kHostBytes}, bytes, 16, random_);
    EXPECT_TRUE(world.moves(host_.bytes(), from, bytes));
  }
  EXPECT_GT(world.counts().read_in_place, 0U);
  EXPECT_GT(world.counts().gathered, 0U);
  const MoveCounts before = world.counts();
  EXPECT_TRUE(world.moves(host_.bytes(), {3 * kMiB / 64 - 8, 8192 / 64}, 4096));
  EXPECT_EQ(world.counts().gathered, before.gathered)
      << "over the border of two ranges, and from a whole page on";
  EXPECT_TRUE(world.moves(host_.bytes(), {5000 / 64 + 1, 9 * kMiB / 64}, 64));
  EXPECT_EQ(world.counts().read_in_place, before.read_in_place + 2 * 4096)
      << "a page that lies in none as a whole";
}

// The same addresses have other pages after a resize.
TEST_F(CudaTransfer, PagesThatCameBackAreReadAnew) {
  TransferWorld world(pools_);
  const PageRange all{0, kHostBytes}, some{10 * kMiB, 50 * kMiB + 4096};
  for (int round = 0; round < 2; ++round) {
    pools_.keep_pages(1, {all});
    const std::vector<uint32_t> from = slots_in(host_.bytes(), all, kMiB, 12, random_);
    EXPECT_TRUE(world.moves(host_.bytes(), from, kMiB));
    std::vector<PageRange> stays = ReservedMemory::pages_of({&some, 1}).inner;
    pools_.keep_pages(1, stays);
    host_.use(kHostBytes, {&some, 1});
    EXPECT_TRUE(world.moves(host_.bytes(), slots_in(host_.bytes(), some, kMiB, 12, random_), kMiB));
    host_.use(kHostBytes, {&all, 1});
    fill_with_noise(host_.bytes().first(8 * kMiB), 7 + round);
    fill_with_noise(host_.bytes().subspan(52 * kMiB), 9 + round);
  }
  EXPECT_GT(world.counts().read_in_place, 36 * kMiB);
}

// Neurons that are encoded go through blocks, whether or not the host's memory is registered.
TEST_F(CudaTransfer, EncodesNeuronsAnewAsItGathersThem) {
  const PageRange all{0, kHostBytes};
  pools_.keep_pages(1, {all});
  TransferWorld world(pools_);
  uint64_t moved = 0;
  const auto expect_encoded = [&](const Cut& cut, Encoding to, size_t n) {
    SCOPED_TRACE(testing::Message() << n << " of cut " << cut.index() << " as " << name(to));
    const NeuronRecoding recoding(cut, Encodings(3, Encoding::f16), Encodings(3, to));
    const std::vector<uint32_t> from = slots_in(host_.bytes(), all, recoding.from_bytes(), n, random_);
    EXPECT_TRUE(world.encodes(host_.bytes(), from, recoding));
    moved += from.size() * recoding.to_bytes();
    EXPECT_EQ(world.counts().gathered, moved) << "what crosses the link";
  };
  for (const Encoding to : {Encoding::q8_0, Encoding::q4_0}) {
    expect_encoded(Bundles{96, 1, false}, to, 1);
    expect_encoded(Bundles{96, 1, true}, to, 300);
    expect_encoded(Bundles{4096, 1, true}, to, 900);
    expect_encoded(Experts{512, 1024, 1}, to, 5);  // each takes several blocks
  }
  EXPECT_EQ(world.counts().read_in_place, 0U);
  EXPECT_TRUE(world.moves(host_.bytes(), {1, 2, 3}, 4096)) << "the next one is of slots as they are";
}

}  // namespace
}  // namespace tierd::cuda
