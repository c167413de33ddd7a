// What was measured, as a table for a person and as TOML for configs/hardware.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/tier/calibrate/kernel_rates.h"
#include "tools/tier/calibrate/touch_latency.h"

namespace tierd {

struct ReadPoint {
  uint64_t read_bytes = 0;
  uint32_t depth = 0;
  double sequential = 0;  // bytes per second
  double random = 0;
};
struct MemoryPoint {
  uint32_t threads = 0;
  double bytes_per_second = 0;
};

struct Machine {
  std::string host;
  std::string cpu;
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::string measured;       // date and time, UTC
  std::string device;         // what the file was read with
  std::string folder;         // on the disk that was read
  double check_rate = 0;      // bytes a second that a thread checks
  double copy_rate = 0;       // and copies
  uint64_t thread_ns = 0;     // that a read takes of the thread that asks for it
  TouchLatency touch;         // before anything else was read of the file
  bool just_written = false;  // the file: what lies below a virtual disk may have it still
  uint32_t round = 1;         // reads that the disk tells of together
  std::vector<ReadPoint> reads;
  std::vector<MemoryPoint> memory;
  std::string kernels;  // the instruction set that was measured
  uint32_t kernel_threads = 0;
  std::vector<KernelRate> rates;
};

// Host, processor, cores, memory and time; nothing measured yet.
Machine describe_machine();

// The fastest sequential point, and the one with the fewest bytes in flight that comes within 5 % of it.
const ReadPoint& fastest(const Machine& machine);
const ReadPoint& leanest(const Machine& machine);

std::string to_table(const Machine& machine);
std::string to_toml(const Machine& machine);

}  // namespace tierd
