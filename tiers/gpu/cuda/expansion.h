// Moves that expand bitmaps (Endor, section 3.3): compressed neurons land in a room of the device and are
// expanded from there into their slots, all on the copying stream. Only compressed bytes cross the link.
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
  // Bytes that land before they are expanded, or one neuron: several blocks of a transfer, so that the copy
  // engine fetches the next blocks while the kernels run.
  static constexpr uint64_t kLandedBytes = 16 << 20;
  explicit Expansion(uint64_t landed_bytes = kLandedBytes) : at_least_(landed_bytes) {}

  // Returns the device memory that a plan needs here.
  static uint64_t device_bytes(const ComputePlan& plan);
  cudaError_t allocate(const ComputePlan& plan);

  bool has(uint32_t edition) const { return edition < editions_.size() && editions_[edition].has_value(); }
  uint32_t neurons(uint32_t edition) const { return static_cast<uint32_t>(editions_[edition]->sizes.size()); }
  // Bytes of a neuron in its slot on the host, and in its slot on the device.
  uint64_t compressed_bytes(uint32_t edition, uint32_t neuron) const;
  uint64_t dense_bytes(uint32_t edition, uint32_t neuron) const;
  // Bytes of a neuron that are moved: the compressed ones, rounded up to a place.
  uint64_t crossing_bytes(uint32_t edition, uint32_t neuron) const;

  // The neurons `units` (with numbers `neurons`) are read from slots of `bytes` bytes at `source`, each at
  // least compressed_bytes() long, and expanded to their places in `memory`. The lists stay unchanged until
  // the move has ended. One move at a time.
  struct Move {
    uint32_t edition = 0;
    std::span<const Unit> units = {};
    std::span<const uint32_t> neurons = {};
    uint64_t bytes = 0;
    const std::byte* source = nullptr;
    std::byte* memory = nullptr;
  };
  cudaError_t begin(const Move& move, HostWork& host, cudaStream_t stream);
  // Queues as much as the transfer has room for; never waits for the device. Sets `queued` when the whole
  // move, expansion included, is queued.
  cudaError_t advance(Transfer& transfer, cudaStream_t stream, bool& queued);
  // Drops the part of the move that is not queued yet.
  void stop(Transfer& transfer);
  // Returns whether the last move found a malformed neuron. Call it after that move has ended.
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
  // Two lists of [units of the move] each: the neurons with their places in the room, then with their places
  // in the memory.
  Growing<PinnedBytes> lists_here_;
  Growing<DeviceBytes> lists_there_;
  size_t next_ = 0;   // the move's unit behind the group that is being moved
  size_t group_ = 0;  // that group's first unit
  bool expanded_ = false;
};

}  // namespace tierd::cuda
