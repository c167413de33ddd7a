// A disk in virtual time. It serves one read after the other, each in the time that the description gives,
// but no read completes before the latency of a single read. It reports each read at its end, or a whole
// round at once: up to `round` reads that were given while others of the round were served. A thread requests
// reads, and checks and copies their data, one after the other, and not while it computes; between two checks
// it does other requested work, and gives the disk new reads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/block_device.h"
#include "core/kernel/post/clocks.h"
#include "core/time/machine.h"
#include "core/time/modelled_agent.h"

namespace tierd {

class DescribedDisk final : public BlockDevice {
 public:
  // `carries_out` executes a read at its end; NULL: nothing is read, and memory is unchanged. `device` serves
  // the reads, one after the other; `thread` does the rest. All references must outlive this.
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
    uint64_t given_ns = 0;  // when the disk received it
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
  std::deque<Pending> reading_;         // by the time of completion
  std::deque<DeviceRead> landed_;       // completed; the first is being checked
  std::optional<uint64_t> checked_ns_;  // end of that check, once it has started
};

}  // namespace tierd
