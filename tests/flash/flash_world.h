// A store's file with its extents, and memory for lists and destinations, for tests of the flash agent.
// Everything follows from a seed. Bytes around the destinations are checked.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/agent/extent_table.h"
#include "core/agent/message.h"
#include "core/agent/pool.h"
#include "core/base/checksum.h"
#include "core/base/random.h"
#include "tests/flash/block.h"
#include "tiers/flash/device.h"

namespace tierd {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedMemory = std::unique_ptr<std::byte[], FreeMemory>;
inline AlignedMemory aligned_memory(size_t bytes) {
  return AlignedMemory(static_cast<std::byte*>(std::aligned_alloc(kBlock, bytes)));
}

class FlashWorld {
 public:
  static constexpr uint16_t kAgent = 3;
  static constexpr uint32_t kSlots = 96;                     // reads that may be alive at once
  static constexpr uint64_t kSlotBytes = uint64_t{1} << 19;  // of destinations
  static constexpr MemoryId kMemory = 2;
  static constexpr int kUntouched = 0xEE;

  enum class Packing : uint8_t { blocks, packed };  // extents of whole blocks, or of multiples of 64 bytes

  explicit FlashWorld(uint64_t seed, uint32_t extents = 64, Packing packing = Packing::blocks)
      : random_(seed), unit_(packing == Packing::blocks ? kBlock : kPlaceUnit) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < extents; ++i) {
      if (random_.below(4) == 0) end += packing == Packing::blocks ? kBlock : kPlaceUnit * random_.below(300);
      const uint64_t bytes = unit_ * (1 + random_.below(packing == Packing::blocks ? 8 : 200));
      table_.push_back({.offset = end, .bytes = bytes});
      end += bytes;
    }
    fill(end);
  }
  // Makes a world of these extents in a file of `end` bytes and fills in the checksums.
  FlashWorld(std::vector<ExtentRef> table, uint64_t end)
      : random_(1), unit_(kPlaceUnit), table_(std::move(table)) {
    fill(end);
  }
  ~FlashWorld() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  FlashWorld(const FlashWorld&) = delete;
  FlashWorld& operator=(const FlashWorld&) = delete;

  // Returns the file, which is written at the first call.
  const std::string& path() {
    if (path_.empty()) {
      path_ = testing::TempDir() + "/flash_world_" + std::to_string(::getpid()) + "_" +
              std::to_string(reinterpret_cast<uintptr_t>(this));
      std::ofstream(path_, std::ios::binary)
          .write(reinterpret_cast<const char*>(content_.data()),
                 static_cast<std::streamsize>(content_.size()));
    }
    return path_;
  }

  Random& random() { return random_; }
  const PoolTable& pools() const { return pools_; }
  std::vector<ExtentRef>& table() { return table_; }
  std::vector<std::byte>& content() { return content_; }
  std::span<std::byte> memory() { return {memory_.get(), kSlots * kSlotBytes}; }

  // Returns a `read` of these extents into a slot of its own, with gaps of gap(i) blocks, or of gap(i) times
  // 64 bytes if packed.
  template <class Gap>
  Message read(const std::vector<uint32_t>& extents, Priority priority, Gap gap) {
    const uint32_t slot = take_slot();
    std::byte* base = memory_.get() + slot * kSlotBytes;
    std::memset(base, kUntouched, kSlotBytes);
    std::vector<Unit>& units = lists_[slot];
    units.clear();
    uint64_t at = 0;
    for (size_t i = 0; i < extents.size(); ++i) {
      at += unit_ * gap(i);
      units.push_back({extents[i], static_cast<uint32_t>((slot * kSlotBytes + at) / kPlaceUnit)});
      if (extents[i] < table_.size()) at += table_[extents[i]].bytes;
    }
    EXPECT_LE(at, kSlotBytes);
    return message(Op::read, slot, priority);
  }
  Message read(const std::vector<uint32_t>& extents, Priority priority = Priority::demand) {
    return read(extents, priority, [](size_t) { return 0; });
  }
  // Returns a read of some extents, partly neighbours, to places that are partly neighbours.
  Message random_read() {
    std::vector<uint32_t> extents;
    uint32_t extent = random_.below(static_cast<uint32_t>(table_.size()));
    for (uint32_t n = random_.below(12); n > 0; --n) {
      extents.push_back(extent);
      extent = random_.below(3) != 0 ? extent + 1 : random_.below(static_cast<uint32_t>(table_.size()));
      if (extent == table_.size()) extent = 0;
    }
    const auto priority = static_cast<Priority>(random_.below(kPriorities));
    return read(extents, priority, [this](size_t) { return random_.below(3) == 0 ? random_.below(3) : 0; });
  }
  // Returns a `cancel` or `raise` of a read.
  Message about(Op op, const MessageId& id) {
    Message message = plain(op);
    message.about = id;
    return message;
  }
  Message plain(Op op) {
    const uint32_t slot = take_slot();
    lists_[slot].clear();
    return message(op, slot, Priority::demand);
  }

  // The list of a message's units, which a test may change before submitting.
  std::vector<Unit>& units(const Message& message) { return lists_[message.id.slot]; }
  Payload payload(const Message& message) const { return {.units = lists_[message.id.slot]}; }
  void release(const Message& done) { free_.push_back(done.id.slot); }
  bool full() const { return free_.empty(); }

  // Expects that units [0, n) have landed and that no byte beside the destinations was written.
  void expect_landed(const Message& message, uint32_t n) const {
    const std::byte* base = memory_.get() + message.id.slot * kSlotBytes;
    const std::vector<Unit>& units = lists_[message.id.slot];
    uint64_t checked = 0;
    for (uint32_t i = 0; i < units.size(); ++i) {
      const ExtentRef& extent = table_[units[i].unit];
      const uint64_t begin = units[i].place * kPlaceUnit - message.id.slot * kSlotBytes;
      expect_untouched({base + checked, begin - checked});
      checked = begin + extent.bytes;
      if (i < n) {
        EXPECT_EQ(std::memcmp(base + begin, content_.data() + extent.offset, extent.bytes), 0)
            << "unit " << i;
      }
    }
    expect_untouched({base + checked, kSlotBytes - checked});
  }

 private:
  void fill(uint64_t end) {
    content_.resize((end + kBlock - 1) / kBlock * kBlock);
    for (uint64_t at = 0; at < content_.size(); at += sizeof(uint64_t)) {
      const uint64_t word = random_.next();
      std::memcpy(content_.data() + at, &word, sizeof word);
    }
    for (ExtentRef& extent : table_) {
      extent.checksum = checksum({content_.data() + extent.offset, extent.bytes});
    }
    memory_ = aligned_memory(kSlots * kSlotBytes);
    pools_.add_memory(kMemory, {memory_.get(), kSlots * kSlotBytes});
    for (uint32_t slot = kSlots; slot-- > 0;) free_.push_back(slot);
  }
  static void expect_untouched(std::span<const std::byte> memory) {
    if (memory.empty()) return;
    // The first byte is right and each byte equals the next: fast under sanitizers too.
    EXPECT_TRUE(memory[0] == std::byte{kUntouched} &&
                std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0)
        << "a byte beside the destinations was written";
  }
  uint32_t take_slot() {
    EXPECT_FALSE(free_.empty());
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  Message message(Op op, uint32_t slot, Priority priority) {
    Message message;
    message.id = {.slot = slot, .generation = ++generation_};
    message.op = op;
    message.priority = priority;
    message.agent = kAgent;
    message.memory = kMemory;
    message.n_units = static_cast<uint32_t>(lists_[slot].size());
    return message;
  }

  Random random_;
  uint64_t unit_;
  std::string path_;
  std::vector<std::byte> content_;
  std::vector<ExtentRef> table_;
  AlignedMemory memory_;
  PoolTable pools_;
  std::vector<std::vector<Unit>> lists_ = std::vector<std::vector<Unit>>(kSlots);
  std::vector<uint32_t> free_;
  uint32_t generation_ = 0;
};

}  // namespace tierd
