// Where threads of this process compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

struct hwloc_topology;

namespace tierd {

// The processing units that the process may use, in the order in which threads take them: one of each
// physical core, performance cores first, as hwloc ranks kinds of cores; then, in the same order, what
// simultaneous multithreading adds, which computes no faster where memory is the limit.
struct CoreMap {
  struct Unit {
    uint32_t os_index = 0;
    uint32_t node = 0;  // NUMA: hwloc's logical index
  };
  std::vector<Unit> units;
  uint32_t cores = 1;    // units that are the first of their core
  uint32_t threads = 1;  // that compute where nobody says how many

  // The NUMA nodes of the units that are named by their place in the order, ascending.
  std::vector<uint32_t> nodes_of(std::span<const uint32_t> places) const;
};

// `topology`: loaded. `allowed`: units by os_index; empty: all of them. `quota`: processors' worth of time,
// see own_cpu_quota. More threads than the quota has processors wait for it together; one that is short of a
// quarter of its time loses less than it brings (measured on two cores: at 1.5 one thread decodes 54 tokens/s
// and two 49, at 1.9 one 54 and two 64).
CoreMap map_cores(hwloc_topology* topology, std::span<const uint32_t> allowed, std::optional<double> quota);

// Returns the map of this process, as it was found when somebody first asked: it has the units that the
// process's cpuset and its affinity allow. HWLOC_SYNTHETIC and HWLOC_XMLFILE put another machine in the place
// of this one, and nothing is bound to that.
const CoreMap& own_cores();
// Threads that compute where nobody says how many.
inline uint32_t available_cores() {
  return own_cores().threads;
}

// Binds the calling thread to the unit at this place of the order (modulo their number). Error: unsupported,
// where the system refuses; the thread then runs where it did.
Status bind_this_thread(uint32_t place);

// The calling thread runs at once when it is woken, beside threads that compute on every core: it asks the
// scheduler for short slices, which needs no privilege. Does nothing where the system is older than
// Linux 6.12.
void take_short_slices();

// Gives the calling thread, and the threads that it starts, the least share of a core that other threads
// want.
void give_way();

// Pages of this memory that nobody has touched yet will come from the NUMA nodes of these units in turn, so
// that all that compute share all memory controllers. Does nothing where that is one node, or the system
// refuses.
void interleave_over_nodes(std::span<std::byte> memory, std::span<const uint32_t> places);

}  // namespace tierd
