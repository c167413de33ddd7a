// The memories of a run, the links that carry neurons between them, and the units that compute from them.
// Built before the kernel, and constant while it lives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/agent/message.h"
#include "core/kernel/site.h"

namespace tierd {

// The memory of a tier, or of one of its agents: arena slots and staging blocks.
struct Memory {
  std::string name;          // of its tier, for people and plugins
  uint16_t agent = 0;        // the agent that owns it
  uint64_t arena_bytes = 0;  // bytes that its cache splits among the editions
  // [editions] The edition that this memory holds in place of each: the same one, another that is made of it,
  // or the one that it is made of (then several may map to one). Empty: each is held as itself.
  std::vector<EditionId> held = {};
  std::vector<uint64_t> arena_offset;  // [editions] where the slots of each begin, bytes
  std::vector<uint32_t> reserved;      // [editions] slots that have addresses
  bool resizes = false;                // the agent serves `move` inside the arena, and `resize`
  uint64_t staging_offset = 0;         // where the staging blocks begin, bytes
  uint32_t staging_blocks = 0;
  uint32_t block_bytes = 0;  // at least the largest slot; where results are added, the slots of a whole run
  // The memory that this one lies over: a neuron that no memory with a link to this one holds is first
  // fetched into `over`, whose cache decides then. Its number is less than this memory's.
  MemoryId over = kStore;

  EditionId held_as(EditionId edition) const { return held.empty() ? edition : held[edition]; }
  bool holds(EditionId edition) const { return held_as(edition) == edition; }
};

// A link: an agent that carries neurons from one memory to another.
struct Link {
  MemoryId from = kStore;
  MemoryId to = 0;
  uint16_t agent = 0;  // serves `read` on a link from the store, else `move`
  uint8_t lane = 0;    // of the agent
};

// An agent that computes, and the memory that it computes from.
struct ComputeUnit {
  uint16_t agent = 0;
  MemoryId memory = 0;
  uint8_t lane = 0;         // of the agent
  bool joint_runs = false;  // one message may be about several sites
};

struct Topology {
  std::vector<Memory> memories;    // memory m at m - 1; the store is not listed
  std::vector<Link> links;         // links into the same memory: the nearest first
  std::vector<ComputeUnit> units;  // each has a memory of its own

  const Memory& memory(MemoryId id) const { return memories[id - 1u]; }
  Memory& memory(MemoryId id) { return memories[id - 1u]; }
  // Returns `n` memories that are read from the store, each with a unit.
  static Topology over_store(uint32_t n) {
    Topology topology;
    topology.memories.resize(n);
    for (Memory& memory : topology.memories) memory.name = "memory";
    for (uint32_t i = 0; i < n; ++i) topology.units.push_back({.memory = static_cast<MemoryId>(i + 1)});
    return topology;
  }

  // Returns the unit that computes from a memory, or kNoUnit.
  uint16_t unit_of(MemoryId id) const {
    for (size_t u = 0; u < units.size(); ++u) {
      if (units[u].memory == id) return static_cast<uint16_t>(u);
    }
    return kNoUnit;
  }
  // Returns whether the unit computes from this memory, or from one that lies over it.
  bool feeds(MemoryId id, uint16_t unit) const {
    MemoryId at = units[unit].memory;
    while (at > id) at = memory(at).over;
    return at == id;
  }
};

}  // namespace tierd
