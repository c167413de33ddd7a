// Brings slots of the host's memory to places of the device. Those in registered memory are read from there
// (registered_move.h); the host gathers the others into pinned blocks, which the copy engine fetches while
// the next one is filled, and a kernel scatters them. Neurons that are encoded anew are so as they are
// gathered: they cross the link in the fewer bits.
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
  // What both blocks take of the device.
  static constexpr uint64_t device_bytes() { return kBlocks * whole_block(); }

  // `registered` outlives this.
  explicit Transfer(RegisteredMemory& registered) : registered_(registered) {}
  cudaError_t create();

  // The bytes of each slot go from source + unit * 64 to memory + place * 64; lists, source and host stay
  // until it is over. One at a time.
  void begin(const MovedSlots& slots, const std::byte* source, std::byte* memory, HostWork& host);
  // The same for neurons in such slots, which `recoding` encodes anew; no piece of it is larger than a block.
  void begin(std::span<const Unit> units, const NeuronRecoding& recoding, const std::byte* source,
             std::byte* memory, HostWork& host);
  // Goes on as far as blocks are free: gathers by the host's threads, never waits for the device.
  // Sets `over` when the last byte has landed.
  cudaError_t advance(cudaStream_t stream, bool& over);
  // Whether everything is on its way: what is queued on the stream next finds it landed.
  bool all_begun() const { return slots_.empty(); }
  // What is not on its way yet stays where it is; it is over when the rest has landed.
  void stop() {
    slots_ = {};
    registered_.stop();
  }
  // The device is lost, or has done all: nothing of the host is read any more.
  void forget() { registered_.forget(); }
  // The event that ends what the engine is to do next; only while a transfer is not over.
  cudaEvent_t next_event() const {
    return registered_.under_way() ? registered_.event() : blocks_[oldest_].done.get();
  }
  // Returns the bytes that were queued since the start, as they cross the link.
  MoveCounts counts() const { return {.read_in_place = registered_.bytes(), .gathered = gathered_}; }

 private:
  static constexpr uint32_t kMostLandings = 4096;  // of a block
  static constexpr uint64_t whole_block() { return kBlockBytes + kMostLandings * sizeof(Landing); }
  struct Block {
    PinnedBytes here;
    DeviceBytes there;
    Event done;
  };
  // What lies in a block.
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
  uint32_t oldest_ = 0;  // of those under way
  uint32_t under_way_ = 0;
  std::vector<HostWork::Copy> copies_;  // into a block
  std::vector<HostWork::Encode> encodes_;
  MovedSlots slots_;   // the first of which are not all on their way
  uint64_t part_ = 0;  // bytes of the first one that are on their way already
  const NeuronRecoding* recoding_ = nullptr;
  size_t piece_ = 0;  // of the first unit, that is next
  uint64_t gathered_ = 0;
  const std::byte* source_ = nullptr;
  std::byte* memory_ = nullptr;
  HostWork* host_ = nullptr;
};

}  // namespace tierd::cuda
