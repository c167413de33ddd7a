// Reads that expand compressed neurons as they land (kRecode).
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/align.h"
#include "core/kernel/post/clocks.h"
#include "core/model/layout/bitmap.h"
#include "tests/flash/flash_world.h"
#include "tests/flash/manual_device.h"
#include "tiers/compute/kernels.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

constexpr Bitmap kHalves{2, std::byte{0}};
constexpr uint32_t kNeurons = 12;
constexpr uint32_t kDense = 8192;

// A file with packed compressed neurons between two extents that are not compressed.
class ExpandingReads : public testing::Test {
 protected:
  ExpandingReads() {
    Random random(5);
    std::vector<ExtentRef> table = {{.offset = 0, .bytes = kBlock}};
    std::vector<std::vector<std::byte>> kept;
    uint64_t at = kBlock;
    for (uint32_t n = 0; n < kNeurons; ++n) {
      std::vector<std::byte>& neuron = dense_.emplace_back(kDense);
      for (std::byte& byte : neuron) byte = static_cast<std::byte>(random.below(256));
      for (size_t i = 0; i < kDense; i += 2) {
        if (random.below(12) >= n) std::memset(neuron.data() + i, 0, 2);
      }
      std::vector<std::byte>& bits = kept.emplace_back(compressed_bytes(kHalves, neuron));
      compress(kHalves, neuron, bits);
      bytes_.push_back(static_cast<uint32_t>(bits.size()));
      table.push_back({.offset = at, .bytes = align_up(bits.size(), kPlaceUnit)});
      at += table.back().bytes;
    }
    table.push_back({.offset = align_up(at, kBlock), .bytes = kBlock});
    world_ = std::make_unique<FlashWorld>(table, table.back().offset + kBlock);
    for (uint32_t n = 0; n < kNeurons; ++n) put(1 + n, kept[n]);
    expanded_.assign(kNeurons, kDense);
    compressed_ = {.first = 1, .bitmap = kHalves, .bytes = bytes_, .expanded = expanded_};
    make_agent();
  }

  void make_agent() {
    auto bounce = BounceBuffer::create(64 * kBlock);
    EXPECT_TRUE(bounce.ok());
    auto device = std::make_unique<ManualDevice>(world_->content(), 8);
    device_ = device.get();
    const FlashOptions options{.expansion = Expansion({&compressed_, 1}, best_kernels().expand_bitmap)};
    agent_ = std::make_unique<FlashAgent>(FlashWorld::kAgent, world_->pools(), clock_, std::move(device),
                                          world_->table(), options, std::move(*bounce));
  }

  // Replaces the contents of an extent.
  void put(uint32_t extent, std::span<const std::byte> bytes) {
    ExtentRef& ref = world_->table()[extent];
    std::byte* const content = world_->content().data() + ref.offset;
    std::memset(content, 0, ref.bytes);
    std::memcpy(content, bytes.data(), bytes.size());
    ref.checksum = checksum({content, ref.bytes});
  }
  // Reads these extents, each into a place with room for a dense neuron.
  Done read(const std::vector<uint32_t>& extents, uint8_t flags) {
    units_.clear();
    std::memset(world_->memory().data(), FlashWorld::kUntouched, extents.size() * kPlace);
    for (size_t i = 0; i < extents.size(); ++i)
      units_.push_back({extents[i], static_cast<uint32_t>(i * kPlace / kPlaceUnit)});
    Message message;
    message.op = Op::read;
    message.flags = flags;
    message.agent = FlashWorld::kAgent;
    message.memory = FlashWorld::kMemory;
    message.n_units = static_cast<uint32_t>(units_.size());
    EXPECT_EQ(agent_->submit(message, {.units = units_}), Submit::ok);
    Done done;
    for (;;) {
      while (agent_->drive() == Drive::busy) {
      }
      if (agent_->poll({&done, 1}) == 1) return done;
      EXPECT_FALSE(device_->started.empty());
      device_->finish(0);
    }
  }
  // Returns the first `bytes` bytes of place i and checks that nothing behind them was written.
  std::span<const std::byte> place(size_t i, uint64_t bytes) {
    const std::span<const std::byte> all = world_->memory().subspan(i * kPlace, kPlace);
    for (const std::byte byte : all.subspan(bytes)) {
      if (byte != std::byte{FlashWorld::kUntouched}) {
        ADD_FAILURE() << "place " << i << " has more than " << bytes << " bytes";
        break;
      }
    }
    return all.first(bytes);
  }
  std::span<const std::byte> stored(uint32_t extent) const {
    const ExtentRef& ref = world_->table()[extent];
    return std::span(world_->content()).subspan(ref.offset, ref.bytes);
  }

  static constexpr uint64_t kPlace = kDense + kBlock;
  std::vector<std::vector<std::byte>> dense_;
  std::vector<uint32_t> bytes_, expanded_;
  CompressedExtents compressed_;
  std::unique_ptr<FlashWorld> world_;
  WallClock clock_;
  ManualDevice* device_ = nullptr;
  std::unique_ptr<FlashAgent> agent_;
  std::vector<Unit> units_;
};

TEST_F(ExpandingReads, BringDenseNeuronsAndWhatIsNotCompressedAsItIs) {
  std::vector<uint32_t> all;
  for (uint32_t extent = kNeurons + 2; extent-- > 0;) all.push_back(extent);
  const Done done = read(all, kRecode);
  EXPECT_EQ(done.status, DoneStatus::ok);
  EXPECT_EQ(done.n_done, all.size());
  uint64_t bytes = 0;
  for (const ExtentRef& extent : world_->table()) bytes += extent.bytes;
  EXPECT_EQ(done.bytes, bytes) << "those of the extents";
  for (size_t i = 0; i < all.size(); ++i) {
    const bool compressed = all[i] != 0 && all[i] != kNeurons + 1;
    const std::span<const std::byte> expected =
        compressed ? std::span<const std::byte>(dense_[all[i] - 1]) : stored(all[i]);
    EXPECT_TRUE(std::ranges::equal(place(i, expected.size()), expected)) << "extent " << all[i];
  }
  EXPECT_NE(agent_->counts().read.expand_ns, 0u);
}

TEST_F(ExpandingReads, OthersBringWhatIsStored) {
  const Done done = read({3, 0, 7}, 0);
  EXPECT_EQ(done.status, DoneStatus::ok);
  EXPECT_TRUE(std::ranges::equal(place(0, stored(3).size()), stored(3)));
  EXPECT_TRUE(std::ranges::equal(place(2, stored(7).size()), stored(7)));
  EXPECT_EQ(agent_->counts().read.expand_ns, 0u);
}

// The neuron is malformed, but its checksum matches, as in a forged store.
TEST_F(ExpandingReads, AMalformedNeuronIsCorrupt) {
  std::vector<std::byte> forged(stored(6).begin(), stored(6).end());
  std::memset(forged.data(), 0xff, 16);
  put(6, forged);
  const Done done = read({2, 6, 4}, kRecode);
  EXPECT_EQ(done.status, DoneStatus::corrupt);
  EXPECT_EQ(done.error, EBADMSG);
  EXPECT_EQ(done.bad_extent, 6u);
  EXPECT_EQ(done.first_bad, 1u);
  EXPECT_EQ(done.n_done, 2u);
}

// A codec that always fails with one error.
class Failing final : public NeuronCodec {
 public:
  explicit Failing(Code code) : code_(code) {}
  std::string_view name() const override { return "failing"; }
  std::string_view settings() const override { return ""; }
  Status compress(std::span<const std::byte>, std::vector<std::byte>&) const override { return failed(); }
  Status expand(std::span<const std::byte>, std::span<std::byte>) const override { return failed(); }

 private:
  Error failed() const { return {code_, "codec 'failing'", "expand: says why"}; }
  const Code code_;
};

// The codec's message is printed once, and its code reaches the caller.
TEST_F(ExpandingReads, ACodecThatFailsSaysWhy) {
  struct Case {
    Code code;
    DoneStatus status;
    int error;
  };
  for (const Case& tried :
       {Case{Code::corrupt, DoneStatus::corrupt, EBADMSG}, Case{Code::no_space, DoneStatus::no_space, ENOMEM},
        Case{Code::plugin_fault, DoneStatus::internal, EBADMSG}}) {
    const Failing codec(tried.code);
    compressed_.codec = &codec;
    make_agent();
    testing::internal::CaptureStdout();
    const Done done = read({2, 6}, kRecode);
    const std::string said = testing::internal::GetCapturedStdout();
    EXPECT_EQ(done.status, tried.status);
    EXPECT_EQ(done.error, tried.error);
    EXPECT_EQ(said.find("codec 'failing': expand: says why"), said.rfind("codec 'failing'"));
    EXPECT_NE(said.find("says why"), std::string::npos) << said;
    agent_.reset();
  }
}

}  // namespace
}  // namespace tierd
