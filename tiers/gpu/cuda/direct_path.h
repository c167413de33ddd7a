// Direct reads into a device's memory: copies from the host's memory on a stream of their own, or cuFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/descriptor.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/outcome.h"
#include "tiers/gpu/direct_path.h"

namespace tierd::cuda {

class CudaDirectPath final : public DirectPath {
 public:
  struct Target {
    int ordinal = 0;
    std::string name;             // "tiers.gpu: cuda, …", for lines about errors
    std::string cufile;           // the library; empty: none is asked
    std::span<std::byte> memory;  // the device's addresses
    // Sees to it that there is memory behind a part of them. False: there is no room, which was told.
    std::function<bool(std::span<std::byte>)> map = {};
  };
  // Error: unsupported, where the device does not let it.
  static Result<std::unique_ptr<CudaDirectPath>> create(Target target);

  uint64_t bytes() const override { return target_.memory.size(); }
  void begin(uint64_t token, std::span<const Copy> copies) override;
  size_t poll(std::span<Copied> copied) override;
  void release() override;
  // What an extent brings is checked the first time it comes: it is copied back and hashed, so that what is
  // checked is what the device computes from. Later nobody looks.
  Result<OwnReads> open(const std::string& path) override;
  Staging stage(std::span<std::byte> memory) override;
  int wait_fd() const override { return rung_.get(); }

 private:
  struct UnderWay {
    Copied copied;
    Event* over = nullptr;  // NULL: nothing was queued
  };
  explicit CudaDirectPath(Target target) : target_(std::move(target)) {}
  Event* take_event(Outcome& outcome);
  void fail(Copied& copied, cudaError_t error);

  const Target target_;
  Stream copying_;
  Stream announcing_;
  Descriptor rung_;  // when copies are over
  std::deque<Event> events_;
  std::vector<Event*> free_events_;
  std::deque<UnderWay> under_way_;  // in the order of their ends
  std::span<std::byte> pinned_;
  bool lost_ = false;
  bool said_ = false;
};

}  // namespace tierd::cuda
