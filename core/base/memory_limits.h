// How much memory this process may still take, and whose word that is.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/memory_group.h"

namespace tierd {

struct MemoryLimit {
  std::string source;  // "this machine (MemAvailable)", "the cgroup /sys/fs/cgroup/memory/jobs/7"
  uint64_t left_bytes = 0;
  // What counts towards it: pages once they are used; addresses that may be written to, used or not; all
  // addresses.
  enum class Counts : uint8_t { pages, data, addresses } counts = Counts::pages;
  uint64_t beside_bytes = 0;  // that were taken off, for what the process needs itself
};

// What they are derived from; tests give their own.
struct MemoryFacts {
  std::string meminfo;              // as in /proc/meminfo
  std::string status;               // as in /proc/self/status
  std::vector<MemoryGroup> groups;  // the process's own and those above it
  rlim_t address_space = RLIM_INFINITY;
  rlim_t data = RLIM_INFINITY;
};
MemoryFacts read_memory_facts();

// All that there are: what the machine has free, what each cgroup still allows, and what ulimit does.
std::vector<MemoryLimit> memory_limits(const MemoryFacts& facts);
// Those on this process as it is now.
std::vector<MemoryLimit> memory_limits();

// What of so many bytes this process takes at most: others may take the rest meanwhile.
uint64_t less_reserve(uint64_t bytes);
// The least of these; without any, nobody says so, and there is as much as can be counted.
MemoryLimit tightest(const std::vector<MemoryLimit>& limits);
// The tightest on this process, less the reserve.
MemoryLimit memory_left();
// Whether addresses are limited that nothing stands at: then none are kept for budgets that may grow.
bool addresses_are_limited();

}  // namespace tierd
