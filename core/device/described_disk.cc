#include "core/device/described_disk.h"

#include <algorithm>
#include <utility>

namespace tierd {

DescribedDisk::DescribedDisk(std::unique_ptr<BlockDevice> carries_out, const DiskDescription& disk,
                             uint32_t depth, VirtualClock& clock, VirtualThread& device,
                             VirtualThread& thread)
    : carries_out_(std::move(carries_out)),
      disk_(disk),
      depth_(depth),
      clock_(clock),
      device_(device),
      thread_(thread) {}

bool DescribedDisk::push(const DeviceRead& read) {
  if (in_flight() == depth_) return false;
  pushed_.push_back(read);
  return true;
}

void DescribedDisk::flush() {
  const uint64_t now = clock_.now_ns();
  for (const DeviceRead& read : pushed_) {
    const double seconds = disk_.reads.seconds_each(static_cast<double>(read.into.size()));
    const auto ns = static_cast<uint64_t>(seconds * 1e9);
    reading_.push_back({read, std::max(device_.begin(now, ns) + ns, now + disk_.latency_ns)});
    clock_.at(reading_.back().done_ns);
  }
  pushed_.clear();
}

size_t DescribedDisk::poll(std::span<DeviceDone> done) {
  const uint64_t now = clock_.now_ns();
  for (; !reading_.empty() && reading_.front().done_ns <= now; reading_.pop_front()) {
    const DeviceRead& read = reading_.front().read;
    const auto check_ns =
        static_cast<uint64_t>(static_cast<double>(read.into.size()) / disk_.check_rate * 1e9);
    checking_.push_back({read, thread_.begin(now, check_ns) + check_ns});
    clock_.at(checking_.back().done_ns);
  }
  size_t n = 0;
  for (; n < done.size() && !checking_.empty() && checking_.front().done_ns <= now; checking_.pop_front())
    done[n++] = carry_out(checking_.front().read);
  return n;
}

DeviceDone DescribedDisk::carry_out(const DeviceRead& read) {
  DeviceDone done{.token = read.token, .result = static_cast<int32_t>(read.into.size())};
  if (carries_out_ == nullptr) return done;
  TIERD_CHECK(carries_out_->push(read));
  carries_out_->flush();
  while (carries_out_->poll({&done, 1}) == 0) {
  }
  return done;
}

void DescribedDisk::register_memory(std::span<std::byte> memory) {
  if (carries_out_ != nullptr) carries_out_->register_memory(memory);
}

}  // namespace tierd
