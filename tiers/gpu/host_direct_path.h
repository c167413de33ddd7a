// Direct reads into the memory of a device that the host stands for: bytes that were read arrive when the
// emulated link would have carried them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/agent/clock.h"
#include "core/base/descriptor.h"
#include "tiers/gpu/direct_path.h"
#include "tiers/link/emulated_link.h"

namespace tierd {

class HostDirectPath final : public DirectPath {
 public:
  // `memory`, `link` and `clock` must outlive the path. Error: io_error.
  static Result<std::unique_ptr<HostDirectPath>> create(std::span<std::byte> memory, EmulatedLink& link,
                                                        const Clock& clock);

  uint64_t bytes() const override { return memory_.size(); }
  void begin(uint64_t token, std::span<const Copy> copies) override;
  size_t poll(std::span<Copied> copied) override;
  void release() override { under_way_.clear(); }
  Result<OwnReads> open(const std::string& path) override;
  Staging stage(std::span<std::byte>) override {
    return {.way = "staged through the host's memory", .why = "this machine stands for the GPU"};
  }
  int wait_fd() const override { return timer_.get(); }

 private:
  struct UnderWay {
    uint64_t token = 0;
    uint64_t over_ns = 0;  // the copy must not end earlier
    std::vector<Copy> copies = {};
  };
  HostDirectPath(std::span<std::byte> memory, EmulatedLink& link, const Clock& clock, Descriptor timer)
      : memory_(memory), link_(link), clock_(clock), timer_(std::move(timer)) {}

  const std::span<std::byte> memory_;
  EmulatedLink& link_;
  const Clock& clock_;
  const Descriptor timer_;
  std::deque<UnderWay> under_way_;  // in the order in which they end
};

}  // namespace tierd
