// One launch brings the part of a move that lies in registered memory, and the host touches no byte of it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/message/message.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/fetch.h"
#include "tiers/gpu/cuda/registered_memory.h"

namespace tierd::cuda {

class RegisteredMove {
 public:
  // `registered` outlives this.
  explicit RegisteredMove(RegisteredMemory& registered) : registered_(registered) {}
  ~RegisteredMove() { forget(); }
  RegisteredMove(const RegisteredMove&) = delete;
  RegisteredMove& operator=(const RegisteredMove&) = delete;
  cudaError_t create() { return over_.create(); }

  // Takes the units that can be read where they lie: `bytes` of each go from source + unit * 64 to memory +
  // place * 64. Returns the others, which stay until the next call. One move at a time.
  std::span<const Unit> begin(std::span<const Unit> units, uint64_t bytes, const std::byte* source,
                              std::byte* memory);
  // Queues what was taken, unless it is under way. Never waits. Sets `over` when all of it has landed.
  cudaError_t advance(cudaStream_t stream, bool& over);
  // What is not queued yet stays where it is.
  void stop() { fetches_.clear(); }
  // What was queued has landed, or the device is lost: nothing is read any more.
  void forget();
  bool under_way() const { return under_way_; }
  cudaEvent_t event() const { return over_.get(); }  // behind what is under way
  uint64_t bytes() const { return bytes_; }          // of all that was queued since the start

 private:
  cudaError_t queue(cudaStream_t stream);

  RegisteredMemory& registered_;
  std::vector<Fetch> fetches_;  // to be queued
  std::vector<Unit> others_;
  Growing<PinnedBytes> list_;  // the fetches under way, as the device reads them
  Event over_;
  bool under_way_ = false;
  std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace tierd::cuda
