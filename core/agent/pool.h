// The table of pools has the addresses, in this process, of the memory that messages name: arena and staging
// of each memory, and the activations of each agent that computes. The owner of a pool registers it before
// any message flows, and never moves it. Access requires ownership or a lease (a place named by a message in
// flight).
//
// The table also announces which pages of a memory remain mapped, to listeners that hold more than addresses:
// a device that has registered pages must release them before they are returned to the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/agent/message.h"
#include "core/base/check.h"

namespace tierd {

// Byte offsets from the beginning of a memory.
struct PageRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A listener that holds pages of memories by more than their addresses.
class PageListener {
 public:
  virtual ~PageListener() = default;
  // From now on only the pages wholly inside these ranges, which ascend, remain mapped: on return the
  // listener holds no other page of the memory. [see keep_pages]
  virtual void pages_kept(std::span<const std::byte> memory, std::span<const PageRange> kept) = 0;
};

class PoolTable {
 public:
  // Set-up only, before the first message. 64 B aligned.
  void add_memory(MemoryId memory, std::span<std::byte> bytes) { add(memories_, memory, bytes); }
  void add_activations(uint16_t agent, std::span<std::byte> bytes) { add(activations_, agent, bytes); }

  // The owner of a memory announces the pages that remain mapped; none before the first call. To be called
  // before other pages are returned or replaced, and with no ranges before the memory is freed. Agents and
  // devices may be destroyed in any order: each ends its own part here, and the table outlives them all.
  // [thread that drives the owner, while no message that names the memory is in flight]
  void keep_pages(MemoryId memory, std::vector<PageRange> kept) {
    if (memory >= kept_.size()) kept_.resize(memory + 1u);
    kept_[memory] = std::move(kept);
    for (PageListener* listener : listeners_) listener->pages_kept(of(memories_, memory), kept_[memory]);
  }
  // Reports the mapped pages to the listener, now and after every change, until listen_no_more. [set-up, and
  // the end, with nothing in flight]
  void listen(PageListener& listener) {
    listeners_.push_back(&listener);
    for (size_t memory = 0; memory < kept_.size(); ++memory) {
      if (!kept_[memory].empty()) listener.pages_kept(of(memories_, memory), kept_[memory]);
    }
  }
  void listen_no_more(PageListener& listener) { std::erase(listeners_, &listener); }

  // [any thread] Returns all of a memory, empty if it is not in this process.
  std::span<std::byte> memory(MemoryId memory) const { return of(memories_, memory); }
  // Aborts for a place outside its memory: only the kernel makes places.
  std::byte* at(MemoryId memory, uint32_t place, uint64_t bytes) const {
    const std::span<std::byte> all = of(memories_, memory);
    const uint64_t begin = place * kPlaceUnit;
    TIERD_CHECK(begin + bytes <= all.size());
    return all.data() + begin;
  }
  // The kernel reads activations between the messages that name them.
  std::span<std::byte> activations(uint16_t agent) const { return of(activations_, agent); }
  // Returns floats at a place in the activations; NULL if they are not in this process.
  const float* values(uint16_t agent, uint32_t place, uint64_t floats) const {
    if (of(activations_, agent).empty()) return nullptr;
    return reinterpret_cast<const float*>(activations(agent, place, floats * sizeof(float)).data());
  }
  std::span<std::byte> activations(uint16_t agent, uint32_t place, uint64_t bytes) const {
    const std::span<std::byte> all = of(activations_, agent);
    const uint64_t begin = place * kPlaceUnit;
    TIERD_CHECK(begin + bytes <= all.size());
    return all.subspan(begin, bytes);
  }

 private:
  using Pools = std::vector<std::span<std::byte>>;
  static void add(Pools& pools, size_t number, std::span<std::byte> bytes) {
    TIERD_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % kPlaceUnit == 0);
    if (number >= pools.size()) pools.resize(number + 1);
    pools[number] = bytes;
  }
  static std::span<std::byte> of(const Pools& pools, size_t number) {
    return number < pools.size() ? pools[number] : std::span<std::byte>();
  }

  Pools memories_;                            // [memories], empty for the store
  Pools activations_;                         // [agents]
  std::vector<std::vector<PageRange>> kept_;  // [memories]
  std::vector<PageListener*> listeners_;
};

}  // namespace tierd
