// Moves slots of the host's memory to places of the device. The device reads those in registered memory in
// place (registered_move.h). The host gathers the others into pinned blocks, which the copy engine fetches
// while the next block is filled, and a kernel scatters. Neurons that are encoded anew are encoded as they
// are gathered, so that the link carries the fewer bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/counts.h"
#include "core/agent/message.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/outcome.h"
#include "tiers/gpu/cuda/registered_memory.h"
#include "tiers/gpu/cuda/registered_move.h"
#include "tiers/gpu/cuda/steps.h"
#include "tiers/gpu/host_work.h"

namespace tierd::cuda {

class Transfer {
 public:
  static constexpr uint64_t kBlockBytes = 4 << 20;
  static constexpr uint32_t kBlocks = 2;
  // Returns the device memory of both blocks.
  static constexpr uint64_t device_bytes() { return kBlocks * whole_block(); }

  // `registered` must outlive the object.
  explicit Transfer(RegisteredMemory& registered) : registered_(registered) {}
  cudaError_t create();

  // Begins a move: the bytes of each slot go from source + unit * 64 to memory + place * 64. Lists, source
  // and host must stay until the move has ended. One move at a time.
  void begin(const MovedSlots& slots, const std::byte* source, std::byte* memory, HostWork& host);
  // The same for neurons, which `recoding` encodes anew; none of its pieces is larger than a block.
  void begin(std::span<const Unit> units, const NeuronRecoding& recoding, const std::byte* source,
             std::byte* memory, HostWork& host);
  // Fills and queues free blocks: gathers by the host's threads, never waits for the device. Sets `over` when
  // the last byte has landed.
  cudaError_t advance(cudaStream_t stream, bool& over);
  // Returns whether the whole move is queued: work that is queued on the stream later finds it landed.
  bool all_begun() const { return slots_.empty(); }
  // Drops the part of the move that is not queued; the move ends when the queued part has landed.
  void stop() {
    slots_ = {};
    registered_.stop();
  }
  // Declares that the device is lost, or has ended all its work: no memory of the host is read any more.
  void forget() { registered_.forget(); }
  // Returns the next event that the move waits for. Call it only while a move is under way.
  cudaEvent_t next_event() const {
    return registered_.under_way() ? registered_.event() : blocks_[oldest_].done.get();
  }
  // Returns the bytes queued since the start, as they cross the link.
  MoveCounts counts() const { return {.read_in_place = registered_.bytes(), .gathered = gathered_}; }

 private:
  static constexpr uint32_t kMostLandings = 4096;  // of a block
  static constexpr uint64_t whole_block() { return kBlockBytes + kMostLandings * sizeof(Landing); }
  struct Block {
    PinnedBytes here;
    DeviceBytes there;
    Event done;
  };
  // The contents of a block.
  struct Gathered {
    Landing* landings = nullptr;
    std::byte* data = nullptr;
    uint32_t n = 0;
    uint64_t filled = 0;
    uint64_t most = 0;  // of a landing
  };
  cudaError_t fill(Block& block, cudaStream_t stream);
  bool has_room(const Gathered& block) const;
  void add(Gathered& block, uint64_t to, uint64_t bytes);
  void gather(Gathered& block);
  void encode(Gathered& block);

  RegisteredMove registered_;
  std::array<Block, kBlocks> blocks_;
  uint32_t oldest_ = 0;  // of the blocks under way
  uint32_t under_way_ = 0;
  std::vector<HostWork::Copy> copies_;  // into a block
  std::vector<HostWork::Encode> encodes_;
  MovedSlots slots_;   // the slots that are not completely queued
  uint64_t part_ = 0;  // bytes of the first slot that are queued already
  const NeuronRecoding* recoding_ = nullptr;
  size_t piece_ = 0;  // the next piece of the first unit
  uint64_t gathered_ = 0;
  const std::byte* source_ = nullptr;
  std::byte* memory_ = nullptr;
  HostWork* host_ = nullptr;
};

}  // namespace tierd::cuda
