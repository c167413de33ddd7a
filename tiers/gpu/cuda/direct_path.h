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
    std::string cufile;           // the library's file; empty: cuFile is not used
    std::span<std::byte> memory;  // the device's addresses
    // Backs a part of the addresses with memory. False: there is no room, and a log line said so.
    std::function<bool(std::span<std::byte>)> map = {};
  };
  // Error: unsupported, if the device or its driver refuses.
  static Result<std::unique_ptr<CudaDirectPath>> create(Target target);

  uint64_t bytes() const override { return target_.memory.size(); }
  void begin(uint64_t token, std::span<const Copy> copies) override;
  size_t poll(std::span<Copied> copied) override;
  void release() override;
  // Each extent is verified after its first load: it is copied back and hashed, so that the check covers the
  // bytes that the device computes from. Later loads are not verified.
  Result<OwnReads> open(const std::string& path) override;
  Staging stage(std::span<std::byte> memory) override;
  int wait_fd() const override { return rung_.get(); }

 private:
  struct UnderWay {
    Copied copied;
    Event* over = nullptr;  // NULL: no copy was queued
  };
  explicit CudaDirectPath(Target target) : target_(std::move(target)) {}
  Event* take_event(Outcome& outcome);
  void fail(Copied& copied, cudaError_t error);

  const Target target_;
  Stream copying_;
  Stream announcing_;
  Descriptor rung_;  // readable when copies have ended
  std::deque<Event> events_;
  std::vector<Event*> free_events_;
  std::deque<UnderWay> under_way_;  // in the order in which they end
  std::span<std::byte> pinned_;
  bool lost_ = false;
  bool said_ = false;
};

}  // namespace tierd::cuda
