// The backend "cuda": a GPU of NVIDIA's. Weights are in its memory, of which only the parts in use are
// mapped; one stream computes and one copies; gives come back to registered activations on the host. After
// construction no function waits for the device: begin() queues a request, and over() polls its event.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/clock.h"
#include "core/agent/pool.h"
#include "core/base/descriptor.h"
#include "tiers/compute/recoding.h"
#include "tiers/dram/reserved_memory.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/captured_runs.h"
#include "tiers/gpu/cuda/cuda_executor.h"
#include "tiers/gpu/cuda/device_options.h"
#include "tiers/gpu/cuda/direct_path.h"
#include "tiers/gpu/cuda/expansion.h"
#include "tiers/gpu/cuda/mapped_memory.h"
#include "tiers/gpu/cuda/message_lists.h"
#include "tiers/gpu/cuda/outcome.h"
#include "tiers/gpu/cuda/registered_memory.h"
#include "tiers/gpu/cuda/transfer.h"
#include "tiers/gpu/device.h"
#include "tiers/gpu/host_work.h"

namespace tierd::cuda {

class CudaDevice final : public Device {
 public:
  // Allocates the device memory that the plan needs, except the arena. Registers its activations, and
  // subscribes to changes of the host memory that it may register with the device. `pools` and `clock` must
  // outlive it; `host` multiplies and gathers in the host's memory. Errors: unsupported, if there is no such
  // device or driver; no_space, naming the tier's capacity.
  static Result<std::unique_ptr<CudaDevice>> create(const DeviceOptions& options, PoolTable& pools,
                                                    const Clock& clock, const ComputePlan& plan,
                                                    std::unique_ptr<HostWork> host);
  ~CudaDevice() override;

  std::string backend() const override { return backend_; }
  void load(uint64_t offset, std::span<const std::byte> bytes) override;
  void begin(Engine engine, const DeviceRequest& request) override;
  std::optional<Done> over(Engine engine) override;
  bool soon(Engine engine) const override;
  int wait_fd() const override { return ready_.get(); }
  void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) override {
    host_->linear(matrix, x, rows, y);
  }
  AgentCounts counts() const override;
  DirectPath* direct() override { return direct_.get(); }

 private:
  struct Running {
    DeviceRequest request;
    Done done = {};
    Outcome outcome = {};
    bool queued = false;     // a call of the request was queued on the device
    bool transfers = false;  // a move of slots of the host, which advances when it is polled
    bool expands = false;    // the transferred neurons are expanded
    bool announced = false;  // the descriptor will turn readable when the request has ended
  };
  CudaDevice(const DeviceOptions& options, PoolTable& pools, const Clock& clock,
             std::unique_ptr<HostWork> host);
  Status prepare(const ComputePlan& plan);
  Status choose_device(const ComputePlan& plan);
  Status open_signals();
  Status allocate(const ComputePlan& plan);
  Error unusable(const std::string& why) const;
  Status prepare_direct();
  Result<std::unique_ptr<BatchProducts>> batch_products(const ComputePlan& plan);
  bool mapped(const MappedMemory::Range& range);
  Status no_room(const std::string& what, uint64_t bytes) const;
  cudaStream_t stream(Engine engine) const { return streams_[static_cast<size_t>(engine)].get(); }
  cudaEvent_t event(Engine engine) const { return events_[static_cast<size_t>(engine)].get(); }
  Transfer& transfer(Engine engine) { return transfers_[static_cast<size_t>(engine)]; }

  void run(Running& running);
  void move(Engine engine, Running& running);
  void move_slots(Engine engine, Running& running);
  void recode(Engine engine, Running& running, const NeuronRecoding& recoding);
  void expand(Engine engine, Running& running);
  static void refuse(Running& running, size_t unit);
  cudaError_t advance(Engine engine, Running& running);
  void resize(Running& running);
  void give(std::span<const Give> gives, uint32_t rows, Outcome& outcome);
  void take_over(std::span<const Give> gives, uint32_t rows);
  bool arrived(Engine engine, Running& running);
  void announce(Engine engine, Running& running);
  Done end(Running running);
  void fail(Running& running, cudaError_t error);
  void map(Running& running, const MappedMemory::Range& range);
  void say_once(const std::string& line);

  const DeviceOptions options_;
  PoolTable& pools_;
  const Clock& clock_;
  const std::unique_ptr<HostWork> host_;
  std::string backend_;
  std::array<Descriptor, kEngines> rung_;  // readable when a request of the engine has ended
  Descriptor ready_;                       // readable when one of `rung_` is
  ReservedMemory given_;                   // the registered activations; only pages with gives are ever
                                           // committed
  std::unique_ptr<MappedMemory> memory_;
  std::unique_ptr<CudaExecutor> executor_;
  MessageLists lists_;
  CapturedRuns captured_;
  Growing<PinnedBytes> gives_;  // the gives of the run under way, line after line
  RegisteredMemory registered_;
  std::array<Transfer, kEngines> transfers_{Transfer(registered_), Transfer(registered_)};
  Expansion expansion_;                                   // used by the copying engine
  std::vector<std::optional<NeuronRecoding>> recodings_;  // [editions] those that are encoded anew
  std::array<Stream, kEngines> streams_;
  std::array<Event, kEngines> events_;
  Stream announcing_;
  std::array<std::optional<Running>, kEngines> running_;
  std::unique_ptr<CudaDirectPath> direct_;
  bool lost_ = false;
  std::optional<cudaError_t> load_error_;
  std::string said_;
};

}  // namespace tierd::cuda
