// The memory that this process may still allocate, and the limit that determines it.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/system/memory_group.h"

namespace tierd {

struct MemoryLimit {
  std::string source;  // "this machine (MemAvailable)", "the cgroup /sys/fs/cgroup/memory/jobs/7"
  uint64_t left_bytes = 0;
  // The limit counts pages in use, or writable addresses, or all addresses.
  enum class Counts : uint8_t { pages, data, addresses } counts = Counts::pages;
  uint64_t beside_bytes = 0;  // already subtracted for the process itself
};

// The inputs of memory_limits; tests supply their own.
struct MemoryFacts {
  std::string meminfo;               // as in /proc/meminfo
  std::string status;                // as in /proc/self/status
  std::vector<ControlGroup> groups;  // the process's own and those above it
  rlim_t address_space = RLIM_INFINITY;
  rlim_t data = RLIM_INFINITY;
};
MemoryFacts read_memory_facts();

// Lists the free memory of the machine, of each cgroup, and of ulimit.
std::vector<MemoryLimit> memory_limits(const MemoryFacts& facts);
// The same for this process now.
std::vector<MemoryLimit> memory_limits();

// Returns the part of `bytes` that this process should take; the rest is a reserve for other processes.
uint64_t less_reserve(uint64_t bytes);
// Returns the least of these. Without any, left_bytes is UINT64_MAX.
MemoryLimit tightest(const std::vector<MemoryLimit>& limits);
// Returns the tightest limit on this process, less the reserve.
MemoryLimit memory_left();
// Checks that the tightest limit leaves `bytes`, for programs that do not plan memory. Error: no_space from
// `origin`, with the bytes needed, the bytes left and the limit.
Status expect_memory(uint64_t bytes, const std::string& origin);
// Returns whether a limit counts unused addresses: then no addresses are reserved for budgets that may grow.
bool addresses_are_limited();

}  // namespace tierd
