// The part of a move in registered memory: one launch fetches it, and the host reads none of its bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/fetch.h"
#include "tiers/gpu/cuda/registered_memory.h"

namespace tierd::cuda {

// Slots to move, and the bytes of each.
struct MovedSlots {
  std::span<const Unit> units = {};
  uint64_t bytes = 0;                      // of each slot
  std::span<const uint32_t> lengths = {};  // [units] of each slot, instead of `bytes`; empty: all have
                                           // `bytes`

  uint64_t length(size_t i) const { return lengths.empty() ? bytes : lengths[i]; }
  bool empty() const { return units.empty(); }
  MovedSlots first(size_t n) const {
    return {units.first(n), bytes, lengths.empty() ? lengths : lengths.first(n)};
  }
  MovedSlots behind_first() const {
    return {units.subspan(1), bytes, lengths.empty() ? lengths : lengths.subspan(1)};
  }
};

class RegisteredMove {
 public:
  // `registered` must outlive the object.
  explicit RegisteredMove(RegisteredMemory& registered) : registered_(registered) {}
  ~RegisteredMove() { forget(); }
  RegisteredMove(const RegisteredMove&) = delete;
  RegisteredMove& operator=(const RegisteredMove&) = delete;
  cudaError_t create() { return over_.create(); }

  // Takes the slots that the device can read in place: their bytes go from source + unit * 64 to memory +
  // place * 64. Returns the other slots, in lists that are valid until the next call. One move at a time.
  MovedSlots begin(const MovedSlots& slots, const std::byte* source, std::byte* memory);
  // Queues the slots that were taken, unless they are queued. Never waits. Sets `over` when all have landed.
  cudaError_t advance(cudaStream_t stream, bool& over);
  // Drops the slots that are not queued yet.
  void stop() { fetches_.clear(); }
  // Declares that all queued fetches have landed, or that the device is lost: no memory is read any more.
  void forget();
  bool under_way() const { return under_way_; }
  cudaEvent_t event() const { return over_.get(); }  // completes when the queued fetches have landed
  uint64_t bytes() const { return bytes_; }          // queued since the start

 private:
  cudaError_t queue(cudaStream_t stream);

  RegisteredMemory& registered_;
  std::vector<Fetch> fetches_;  // to be queued
  std::vector<Unit> others_;
  std::vector<uint32_t> other_lengths_;
  Growing<PinnedBytes> list_;  // the fetches under way, as the device reads them
  Event over_;
  bool under_way_ = false;
  std::byte* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace tierd::cuda
