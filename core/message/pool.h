// The table of pools tells where in this process the memory is that messages name: arena and staging of each
// memory, and the activations of each agent that computes. Whoever owns a pool registers it before any
// message flows, and it stays where it is until the end. Reading or writing it needs ownership or a lease (a
// place handed over by a message in flight).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/message/message.h"

namespace tierd {

class PoolTable {
 public:
  // Set-up only, before the first message. 64 B aligned.
  void add_memory(MemoryId memory, std::span<std::byte> bytes) { add(memories_, memory, bytes); }
  void add_activations(uint16_t agent, std::span<std::byte> bytes) { add(activations_, agent, bytes); }

  // Any thread. All of a memory, empty where it is not in this process.
  std::span<std::byte> memory(MemoryId memory) const { return of(memories_, memory); }
  // A place outside its memory is a broken invariant: places come from the kernel alone.
  std::byte* at(MemoryId memory, uint32_t place, uint64_t bytes) const {
    const std::span<std::byte> all = of(memories_, memory);
    const uint64_t begin = place * kPlaceUnit;
    TIERD_CHECK(begin + bytes <= all.size());
    return all.data() + begin;
  }
  // The kernel looks at them between the messages that name them.
  std::span<std::byte> activations(uint16_t agent) const { return of(activations_, agent); }
  // Floats at a place of them; NULL where they are not in this process.
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

  Pools memories_;     // [memories], the store's is empty
  Pools activations_;  // [agents]
};

}  // namespace tierd
