// A device with one bad byte range. As on a real disk, bytes before the range are readable. A read that
// begins in the range fails, or its bytes arrive with one bit flipped.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/descriptor.h"
#include "tiers/flash/device.h"

namespace tierd {

enum class BadRead : uint8_t { io_error, invalid, flipped_bit };

// The bad byte range and its fault. Owned by the test, which changes it between the batches of a run.
struct BadPlace {
  static constexpr uint32_t kForever = UINT32_MAX;

  BadRead kind = BadRead::io_error;
  uint64_t begin = 0;  // bytes of the file
  uint64_t end = 0;
  uint32_t times = 0;  // reads that still fail
};

class BadPlaceDevice final : public BlockDevice {
 public:
  // `place` must outlive the device. Both are used by one thread.
  BadPlaceDevice(std::unique_ptr<BlockDevice> inner, BadPlace& place)
      : inner_(std::move(inner)), place_(place), always_(::eventfd(1, EFD_NONBLOCK)) {}

  std::string_view name() const override { return inner_->name(); }
  uint32_t depth() const override { return inner_->depth(); }

  bool push(const DeviceRead& read) override {
    const bool bad =
        place_.times != 0 && read.offset < place_.end && read.offset + read.into.size() > place_.begin;
    if (!bad) return inner_->push(read);
    if (place_.kind == BadRead::flipped_bit) {
      go_wrong();
      flipped_[read.token] = &read.into[std::max(place_.begin, read.offset) - read.offset];
      return inner_->push(read);
    }
    if (read.offset < place_.begin) {
      return inner_->push({read.token, read.offset, read.into.first(place_.begin - read.offset)});
    }
    go_wrong();
    failed_.push_back({read.token, place_.kind == BadRead::invalid ? -EINVAL : -EIO});
    return true;
  }
  void flush() override { inner_->flush(); }

  size_t poll(std::span<DeviceDone> done) override {
    size_t n = inner_->poll(done);
    for (const DeviceDone& one : done.first(n)) {
      if (const auto flipped = flipped_.extract(one.token)) *flipped.mapped() ^= std::byte{1};
    }
    for (; n < done.size() && !failed_.empty(); ++n) {
      done[n] = failed_.back();
      failed_.pop_back();
    }
    return n;
  }

  int wait_fd() const override { return always_.get(); }  // a failed read signals no descriptor
  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }
  bool registered() const override { return inner_->registered(); }

 private:
  void go_wrong() {
    if (place_.times != BadPlace::kForever) --place_.times;
  }

  const std::unique_ptr<BlockDevice> inner_;
  BadPlace& place_;
  Descriptor always_;
  std::map<uint64_t, std::byte*> flipped_;  // by token
  std::vector<DeviceDone> failed_;
};

}  // namespace tierd
