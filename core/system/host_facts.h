// What a measurement was made on, for reports.
#pragma once

#include <cstdint>
#include <string>

namespace tierd {

struct HostFacts {
  std::string name;
  std::string cpu;  // "unknown" where /proc/cpuinfo does not say
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
};
HostFacts read_host_facts();

// "2026-03-01 12:30:00 UTC".
std::string date_and_time();

}  // namespace tierd
