// The facts about the machine that reports of measurements state.
#pragma once

#include <cstdint>
#include <string>

namespace tierd {

struct HostFacts {
  std::string name;
  std::string cpu;  // "unknown" if /proc/cpuinfo has no name
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
};
HostFacts read_host_facts();

// "2026-03-01 12:30:00 UTC".
std::string date_and_time();

}  // namespace tierd
