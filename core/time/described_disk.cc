#include "core/time/described_disk.h"

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
  for (const DeviceRead& read : pushed_) {
    const double seconds = disk_.reads.seconds_each(static_cast<double>(read.into.size()));
    const auto ns = static_cast<uint64_t>(seconds * 1e9);
    uint64_t given = clock_.now_ns();
    if (disk_.thread_ns != 0) given = thread_.begin(given, disk_.thread_ns) + disk_.thread_ns;
    reading_.push_back({read, given, std::max(device_.begin(given, ns) + ns, given + disk_.latency_ns)});
    clock_.at(reading_.back().done_ns);
  }
  pushed_.clear();
}

// Returns how many of the first reads are completed together by now.
size_t DescribedDisk::told(uint64_t now_ns) const {
  size_t n = 0;
  while (n < std::min<size_t>(reading_.size(), disk_.round) &&
         (n == 0 || reading_[n].given_ns < reading_[n - 1].done_ns)) {
    ++n;
  }
  return n != 0 && reading_[n - 1].done_ns <= now_ns ? n : 0;
}

// Reads are checked one after the other; other work of the thread may be done between two checks.
size_t DescribedDisk::poll(std::span<DeviceDone> done) {
  const uint64_t now = clock_.now_ns();
  for (size_t together = told(now); together != 0; together = told(now)) {
    for (; together != 0; --together, reading_.pop_front()) landed_.push_back(reading_.front().read);
  }
  size_t n = 0;
  while (!landed_.empty()) {
    if (!checked_ns_) {
      const uint64_t ns = landing_ns(landed_.front());
      checked_ns_ = thread_.begin(now, ns) + ns;
      clock_.at(*checked_ns_);
    }
    if (*checked_ns_ > now || n == done.size()) break;
    done[n++] = carry_out(landed_.front());
    landed_.pop_front();
    checked_ns_.reset();
  }
  return n;
}

uint64_t DescribedDisk::landing_ns(const DeviceRead& read) const {
  double seconds = static_cast<double>(read.checked) / disk_.check_rate;
  if (disk_.copy_rate != 0) seconds += static_cast<double>(read.copied) / disk_.copy_rate;
  return static_cast<uint64_t>(seconds * 1e9);
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
