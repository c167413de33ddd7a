// How much memory this process may still take, and whose word that is.
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
  // A limit counts pages that are in use, or addresses that may be written to, or all addresses.
  enum class Counts : uint8_t { pages, data, addresses } counts = Counts::pages;
  uint64_t beside_bytes = 0;  // what was taken off for the process itself
};

// What they are derived from; tests give their own.
struct MemoryFacts {
  std::string meminfo;               // as in /proc/meminfo
  std::string status;                // as in /proc/self/status
  std::vector<ControlGroup> groups;  // the process's own and those above it
  rlim_t address_space = RLIM_INFINITY;
  rlim_t data = RLIM_INFINITY;
};
MemoryFacts read_memory_facts();

// Lists what the machine has free, what each cgroup still allows, and what ulimit allows.
std::vector<MemoryLimit> memory_limits(const MemoryFacts& facts);
// Lists those on this process as it is now.
std::vector<MemoryLimit> memory_limits();

// Returns how much of so many bytes this process should take: others may need the rest meanwhile.
uint64_t less_reserve(uint64_t bytes);
// Returns the least of these. Where there is none, its source is "nobody", and there is as much as can be
// counted.
MemoryLimit tightest(const std::vector<MemoryLimit>& limits);
// Returns the tightest on this process, less the reserve.
MemoryLimit memory_left();
// Checks that the tightest limit leaves `bytes`, for programs that plan no memory. Error: no_space from
// `origin`, with what is needed, what is left and by which limit.
Status expect_memory(uint64_t bytes, const std::string& origin);
// Tells whether a limit counts addresses that are not in use: then none are reserved for budgets that may
// grow.
bool addresses_are_limited();

}  // namespace tierd
