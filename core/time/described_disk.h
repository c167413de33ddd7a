// A disk in virtual time. It serves one read after the other, each in the time that the description gives it,
// though no read ends before the latency of one alone is over. It tells of each when it ends, or of a whole
// round: reads that were given while others of it were served, as many as the description says. A thread asks
// for reads, and checks and copies what they brought, one after the other, which it cannot do while it
// computes; between two checks it does what it has been asked for meanwhile, and gives the disk new reads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/block_device.h"
#include "core/kernel/post/clocks.h"
#include "core/time/machine.h"
#include "core/time/modelled_agent.h"

namespace tierd {

class DescribedDisk final : public BlockDevice {
 public:
  // `carries_out` really reads, when a read ends; NULL: nothing is read, and what is in memory stays.
  // `device` reads, one read after the other; `thread` does the rest. What is referred to outlives this.
  DescribedDisk(std::unique_ptr<BlockDevice> carries_out, const DiskDescription& disk, uint32_t depth,
                VirtualClock& clock, VirtualThread& device, VirtualThread& thread);

  std::string_view name() const override { return "described"; }
  uint32_t depth() const override { return depth_; }
  bool push(const DeviceRead& read) override;
  void flush() override;
  size_t poll(std::span<DeviceDone> done) override;
  int wait_fd() const override { return -1; }
  void register_memory(std::span<std::byte> memory) override;
  bool registered() const override { return carries_out_ != nullptr && carries_out_->registered(); }

 private:
  struct Pending {
    DeviceRead read;
    uint64_t given_ns = 0;  // to the disk
    uint64_t done_ns = 0;
  };
  size_t told(uint64_t now_ns) const;
  uint64_t landing_ns(const DeviceRead& read) const;
  size_t in_flight() const { return pushed_.size() + reading_.size() + landed_.size(); }
  DeviceDone carry_out(const DeviceRead& read);

  std::unique_ptr<BlockDevice> carries_out_;
  const DiskDescription& disk_;
  const uint32_t depth_;
  VirtualClock& clock_;
  VirtualThread& device_;
  VirtualThread& thread_;
  std::vector<DeviceRead> pushed_;      // not flushed yet
  std::deque<Pending> reading_;         // in the order of their ends
  std::deque<DeviceRead> landed_;       // told of; the first is checked
  std::optional<uint64_t> checked_ns_;  // when that will be over, once it is begun
};

}  // namespace tierd
