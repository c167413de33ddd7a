// A device whose reads end when the test says so, with the result it says.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tiers/flash/device.h"

namespace tierd {

class ManualDevice final : public BlockDevice {
 public:
  ManualDevice(const std::vector<std::byte>& content, uint32_t depth) : content_(content), depth_(depth) {}

  std::string_view name() const override { return "manual"; }
  uint32_t depth() const override { return depth_; }
  bool push(const DeviceRead& read) override {
    EXPECT_LT(pushed_.size() + started.size() + finished_.size(), depth_);
    pushed_.push_back(read);
    return true;
  }
  void flush() override {
    started.insert(started.end(), pushed_.begin(), pushed_.end());
    pushed_.clear();
  }
  size_t poll(std::span<DeviceDone> done) override {
    const size_t n = std::min(done.size(), finished_.size());
    std::copy_n(finished_.begin(), n, done.begin());
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(n));
    return n;
  }
  int wait_fd() const override { return -1; }
  void register_memory(std::span<std::byte>) override {}
  bool registered() const override { return false; }

  // Ends started[i] with all its bytes, with `result` bytes, or with -errno.
  void finish(size_t i) { finish(i, static_cast<int32_t>(started.at(i).into.size())); }
  void finish(size_t i, int32_t result) {
    const DeviceRead read = started.at(i);
    if (result > 0) std::memcpy(read.into.data(), content_.data() + read.offset, static_cast<size_t>(result));
    finished_.push_back({.token = read.token, .result = result});
    started.erase(started.begin() + static_cast<ptrdiff_t>(i));
  }

  std::vector<DeviceRead> started;

 private:
  const std::vector<std::byte>& content_;
  const uint32_t depth_;
  std::vector<DeviceRead> pushed_;
  std::vector<DeviceDone> finished_;
};

}  // namespace tierd
