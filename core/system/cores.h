// The processing units on which threads of this process compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"

struct hwloc_topology;

namespace tierd {

// The processing units that the process may use, in the order in which threads are bound to them: one unit of
// each physical core, performance cores first, as hwloc ranks kinds of cores; then, in the same order, the
// further units of simultaneous multithreading, which add no speed if memory bandwidth is the limit.
struct CoreMap {
  struct Unit {
    uint32_t os_index = 0;
    uint32_t node = 0;  // NUMA: hwloc's logical index
  };
  std::vector<Unit> units;
  uint32_t cores = 1;    // units that are the first of their core
  uint32_t threads = 1;  // default number of compute threads

  // Returns the NUMA nodes, ascending, of the units at these places of the order.
  std::vector<uint32_t> nodes_of(std::span<const uint32_t> places) const;
};

// `topology`: loaded. `allowed`: units by os_index; empty: all of them. `quota`: processors' worth of time,
// see own_cpu_quota. Threads beyond the quota's processors are all throttled together; a thread that lacks at
// most a quarter of its time still gains more than it costs (measured on two cores: at a quota of 1.5 one
// thread decodes 54 tokens/s and two 49, at 1.9 one 54 and two 64).
CoreMap map_cores(hwloc_topology* topology, std::span<const uint32_t> allowed, std::optional<double> quota);

// Returns the map of this process, read once at the first call: the units that the process's cpuset and
// affinity allow. With HWLOC_SYNTHETIC or HWLOC_XMLFILE, another topology to which no thread is bound.
const CoreMap& own_cores();
// Returns the default number of compute threads.
inline uint32_t available_cores() {
  return own_cores().threads;
}

// Binds the calling thread to the unit at this place of the order (modulo their number). Error: unsupported
// if the system refuses; the thread then stays unbound.
Status bind_this_thread(uint32_t place);

// Requests short time slices for the calling thread, so that it runs at once when it is woken although other
// threads compute on every core. Needs no privilege. Does nothing before Linux 6.12.
void take_short_slices();

// Gives the calling thread, and the threads that it starts, the lowest priority.
void give_way();

// Interleaves untouched pages of this memory over the NUMA nodes of these units, so that all compute threads
// share all memory controllers. Does nothing if that is one node, or if the system refuses.
void interleave_over_nodes(std::span<std::byte> memory, std::span<const uint32_t> places);

}  // namespace tierd
