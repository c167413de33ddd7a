// The backend "host": this machine's processor and memory stand for a GPU, so that all code above can be run,
// tested and measured without one. Weights are in an arena of the device, its threads compute on them as the
// DRAM tier does, and a copy to it takes as long as over a link of a given rate. Activations are in private
// buffers; gives are copied out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/agent/clock.h"
#include "core/agent/pool.h"
#include "core/base/descriptor.h"
#include "tiers/dram/dram_agent.h"
#include "tiers/dram/reserved_memory.h"
#include "tiers/gpu/device.h"
#include "tiers/gpu/host_direct_path.h"
#include "tiers/link/emulated_link.h"

namespace tierd {

class HostDevice final : public Device {
 public:
  using Link = EmulatedLink::Rate;
  // Registers its activations, and no part of its memory. `pools` and `clock` must outlive the device.
  // Errors: no_space, io_error.
  static Result<std::unique_ptr<HostDevice>> create(const DramAgent::Options& options, const Link& link,
                                                    PoolTable& pools, const Clock& clock, ComputePlan plan,
                                                    const ComputeKernels& kernels,
                                                    std::unique_ptr<Team> team);

  std::string backend() const override { return "host, " + kernels_; }
  void load(uint64_t offset, std::span<const std::byte> bytes) override;
  void begin(Engine engine, const DeviceRequest& request) override;
  std::optional<Done> over(Engine engine) override;
  int wait_fd() const override { return timer_.get(); }
  void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) override {
    computes_->linear(matrix, x, rows, y);
  }
  AgentCounts counts() const override { return computes_->counts(); }
  DirectPath* direct() override { return direct_.get(); }

 private:
  struct Running {
    DeviceRequest request;
    uint64_t start_ns = 0;
    uint64_t over_ns = 0;      // the request must not end earlier
    std::optional<Done> done;  // the completion of a request that was carried out when it began
  };
  HostDevice(const DramAgent::Options& options, const Link& link, PoolTable& pools, const Clock& clock,
             const ComputeKernels& kernels, Descriptor timer)
      : number_(options.number),
        memory_(options.memory),
        link_(link),
        pools_(pools),
        clock_(clock),
        kernels_(kernels.name),
        timer_(std::move(timer)) {}
  Done carry_out(const DeviceRequest& request);
  void give(const Give& give, uint32_t rows);

  const uint16_t number_;
  const MemoryId memory_;
  EmulatedLink link_;
  PoolTable& pools_;
  const Clock& clock_;
  const std::string kernels_;
  PoolTable own_;  // the device's memory and buffers, and the host's memories that it copies from
  std::unique_ptr<DramAgent> computes_;
  ReservedMemory given_;  // the registered activations; only pages with gives are ever committed
  std::unique_ptr<HostDirectPath> direct_;
  std::array<std::optional<Running>, kEngines> running_;
  Descriptor timer_;
};

}  // namespace tierd
