// The memory that spans name. A pool is registered by the agent that owns it before any message flows and
// stays where it is until the end; reading or writing it needs ownership or a lease (a span handed over by a
// message in flight).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/message/message.h"

namespace tierd {

class PoolTable {
 public:
  // Set-up only, before the first message. `memory` is 64 B aligned. Returns the pool's number within
  // `agent`.
  uint16_t add(uint16_t agent, std::span<std::byte> memory) {
    TIERD_CHECK(reinterpret_cast<uintptr_t>(memory.data()) % kSpanUnit == 0);
    if (agent >= pools_.size()) pools_.resize(agent + 1u);
    pools_[agent].push_back(memory);
    return static_cast<uint16_t>(pools_[agent].size() - 1);
  }

  // Any thread. A span outside its pool is a broken invariant: spans come from the kernel alone.
  std::span<std::byte> resolve(const Span& span) const {
    const std::span<std::byte> pool = at(span.agent, span.pool);
    const uint64_t begin = span.offset * kSpanUnit;
    TIERD_CHECK(begin + span.bytes <= pool.size());
    return pool.subspan(begin, span.bytes);
  }
  std::byte* resolve(uint16_t agent, uint16_t pool, uint32_t offset, uint64_t bytes) const {
    const std::span<std::byte> memory = at(agent, pool);
    const uint64_t begin = offset * kSpanUnit;
    TIERD_CHECK(begin + bytes <= memory.size());
    return memory.data() + begin;
  }

  size_t pools(uint16_t agent) const { return agent < pools_.size() ? pools_[agent].size() : 0; }
  // All of a pool. Set-up, and for whoever looks at memory between messages.
  std::span<std::byte> memory(uint16_t agent, uint16_t pool) const { return at(agent, pool); }

  // The list of a message and its entries.
  static std::span<const Unit> units(std::span<const std::byte> list) {
    const auto* header = reinterpret_cast<const UnitList*>(list.data());
    TIERD_CHECK(list.size() >= sizeof(UnitList) + header->count * sizeof(Unit));
    return {reinterpret_cast<const Unit*>(header + 1), header->count};
  }
  static const UnitList& header(std::span<const std::byte> list) {
    TIERD_CHECK(list.size() >= sizeof(UnitList));
    return *reinterpret_cast<const UnitList*>(list.data());
  }

 private:
  std::span<std::byte> at(uint16_t agent, uint16_t pool) const {
    TIERD_CHECK(agent < pools_.size() && pool < pools_[agent].size());
    return pools_[agent][pool];
  }
  std::vector<std::vector<std::span<std::byte>>> pools_;
};

}  // namespace tierd
