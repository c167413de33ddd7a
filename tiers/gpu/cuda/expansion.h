// Moves that expand what is kept as bitmaps (Endor, section 3.3): compressed neurons land in a room of the
// device, and are expanded from there into their slots, all by the stream that copies. Only their own bytes
// cross the link.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "tiers/gpu/cuda/bitmap.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/transfer.h"
#include "tiers/gpu/host_work.h"

namespace tierd::cuda {

class Expansion {
 public:
  // So many bytes land before they are expanded, or one neuron: several blocks of a transfer, so that the
  // copy engine has the next ones while the kernels run.
  static constexpr uint64_t kLandedBytes = 16 << 20;
  explicit Expansion(uint64_t landed_bytes = kLandedBytes) : at_least_(landed_bytes) {}

  // Memory of the device that a plan takes here.
  static uint64_t device_bytes(const ComputePlan& plan);
  cudaError_t allocate(const ComputePlan& plan);

  bool has(uint32_t edition) const { return edition < editions_.size() && editions_[edition].has_value(); }
  uint32_t neurons(uint32_t edition) const { return static_cast<uint32_t>(editions_[edition]->sizes.size()); }
  // Bytes of a neuron in the host's slot, and in the device's.
  uint64_t compressed_bytes(uint32_t edition, uint32_t neuron) const;
  uint64_t dense_bytes(uint32_t edition, uint32_t neuron) const;
  // Bytes of a neuron that are moved: the compressed ones, to the end of their last place.
  uint64_t crossing_bytes(uint32_t edition, uint32_t neuron) const;

  // One at a time. `units` as in the message, [units] `neurons`; slots of `bytes` come from `source`, at
  // least as long as compressed_bytes() says, and go to places of `memory`. All of it stays until it is over.
  struct Move {
    uint32_t edition = 0;
    std::span<const Unit> units = {};
    std::span<const uint32_t> neurons = {};
    uint64_t bytes = 0;
    const std::byte* source = nullptr;
    std::byte* memory = nullptr;
  };
  cudaError_t begin(const Move& move, HostWork& host, cudaStream_t stream);
  // Goes on as far as the transfer can; never waits for the device. Sets `queued` when all of it has landed
  // and its expansion is queued.
  cudaError_t advance(Transfer& transfer, cudaStream_t stream, bool& queued);
  // What is not on its way yet stays where it is.
  void stop(Transfer& transfer);
  // Whether a neuron of the last move was, when that is over.
  bool malformed() const { return malformed_.set(); }

 private:
  struct Kept {
    Bitmap bitmap;
    uint32_t tiles = 0;
    uint64_t at_once = 0;  // neurons in the room
    std::vector<NeuronSize> sizes;
  };
  struct Rooms {
    uint64_t sizes = 0, counts = 0, landed = 0;  // bytes
  };
  static std::vector<std::optional<Kept>> editions_of(const ComputePlan& plan, uint64_t landed_bytes);
  static Rooms rooms_for(const std::vector<std::optional<Kept>>& editions, uint64_t landed_bytes);
  void begin_group(Transfer& transfer);
  cudaError_t expand_group(cudaStream_t stream);

  const uint64_t at_least_;  // bytes of the room
  std::vector<std::optional<Kept>> editions_;
  std::vector<DeviceBytes> sizes_;  // by edition
  DeviceBytes counts_;
  DeviceBytes landed_;
  Flag malformed_;

  Move move_;
  HostWork* host_ = nullptr;
  std::vector<Unit> landings_;  // of a group: from the host's slots to the room
  std::vector<uint32_t> landing_lengths_;
  // Two lists, [units of the move] each: neurons with their places in the room, and with those in the memory.
  Growing<PinnedBytes> lists_here_;
  Growing<DeviceBytes> lists_there_;
  size_t next_ = 0;   // of the move's units: behind the group that is being landed
  size_t group_ = 0;  // its first
  bool expanded_ = false;
};

}  // namespace tierd::cuda
