// A device with faults on a seeded schedule: short and empty reads, EINTR, EAGAIN, EIO, EINVAL, late and
// reordered completions, refused registration. It fills memory that it has not promised to read with garbage,
// and checks the alignment and depth of its requests.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/random.h"
#include "tiers/flash/device.h"

namespace tierd {

// Probabilities for each read, in percent.
struct Faults {
  uint32_t short_read = 0;  // cut at any byte
  uint32_t empty = 0;       // 0 bytes
  uint32_t interrupted = 0;
  uint32_t again = 0;
  uint32_t io_error = 0;
  uint32_t invalid = 0;
  uint32_t late = 0;  // chance to stay hidden at each poll; also shuffles
  bool registration_refused = false;
};

class FaultDevice final : public BlockDevice {
 public:
  FaultDevice(std::unique_ptr<BlockDevice> inner, const Faults& faults, uint64_t seed)
      : inner_(std::move(inner)), faults_(faults), random_(seed), always_(::eventfd(1, EFD_NONBLOCK)) {}

  std::string_view name() const override { return "fault"; }
  uint32_t depth() const override { return inner_->depth(); }

  bool push(const DeviceRead& read) override {
    EXPECT_EQ((read.offset | read.into.size() | reinterpret_cast<uintptr_t>(read.into.data())) % 4096, 0u);
    EXPECT_FALSE(read.into.empty());
    EXPECT_LT(in_flight_, depth()) << "more reads than the device's depth";
    if (in_flight_ == depth()) return false;
    ++in_flight_;
    deepest_ = std::max(deepest_, in_flight_);
    const int32_t error = draw_error();
    if (error != 0) {
      scribble(read.into);
      finished_.push_back({.token = read.token, .result = error < 0 ? error : 0});
      return true;
    }
    reads_[read.token] = read;
    EXPECT_TRUE(inner_->push(read));
    return true;
  }
  void flush() override { inner_->flush(); }

  size_t poll(std::span<DeviceDone> done) override {
    std::vector<DeviceDone> fresh(depth());
    fresh.resize(inner_->poll(fresh));
    for (DeviceDone& one : fresh) {
      const DeviceRead read = reads_.extract(one.token).mapped();
      if (one.result > 0 && hit(faults_.short_read)) {
        one.result = static_cast<int32_t>(random_.below(static_cast<uint32_t>(one.result)));
        scribble(read.into.subspan(static_cast<size_t>(one.result)));
      }
      finished_.push_back(one);
    }
    size_t n = 0;
    if (faults_.late != 0) shuffle();
    std::erase_if(finished_, [&](const DeviceDone& one) {
      if (n == done.size() || hit(faults_.late)) return false;
      done[n++] = one;
      return true;
    });
    in_flight_ -= static_cast<uint32_t>(n);
    return n;
  }

  int wait_fd() const override { return always_.get(); }  // a late completion signals no descriptor
  void register_memory(std::span<std::byte> memory) override {
    if (!faults_.registration_refused) inner_->register_memory(memory);
  }
  bool registered() const override { return !faults_.registration_refused && inner_->registered(); }

  uint32_t deepest() const { return deepest_; }

 private:
  bool hit(uint32_t percent) { return random_.below(100) < percent; }
  // Returns 0 for none, 1 for an empty read, else -errno.
  int32_t draw_error() {
    if (hit(faults_.interrupted)) return -EINTR;
    if (hit(faults_.again)) return -EAGAIN;
    if (hit(faults_.io_error)) return -EIO;
    if (hit(faults_.invalid)) return -EINVAL;
    if (hit(faults_.empty)) return 1;
    return 0;
  }
  void scribble(std::span<std::byte> memory) {
    std::memset(memory.data(), static_cast<int>(random_.below(256)), memory.size());
  }
  void shuffle() {
    for (size_t i = finished_.size(); i > 1; --i) {
      std::swap(finished_[i - 1], finished_[random_.below(static_cast<uint32_t>(i))]);
    }
  }

  const std::unique_ptr<BlockDevice> inner_;
  const Faults faults_;
  Random random_;
  Descriptor always_;
  std::unordered_map<uint64_t, DeviceRead> reads_;
  std::vector<DeviceDone> finished_;
  uint32_t in_flight_ = 0;
  uint32_t deepest_ = 0;
};

}  // namespace tierd
