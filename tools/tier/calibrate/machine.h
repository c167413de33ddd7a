// The measurements, as a table to read and as TOML for configs/hardware.
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
  std::string device;         // the device that read the file
  std::string folder;         // on the measured disk
  double check_rate = 0;      // bytes per second that a thread verifies
  double copy_rate = 0;       // bytes per second that a thread copies
  uint64_t thread_ns = 0;     // processor time that a read takes of its thread
  TouchLatency touch;         // before any other read of the file
  bool just_written = false;  // the file is new: a cache below a virtual disk may still hold it
  uint32_t round = 1;         // reads that the disk completes together
  std::vector<ReadPoint> reads;
  std::vector<MemoryPoint> memory;
  std::string kernels;  // the measured instruction set
  uint32_t kernel_threads = 0;
  std::vector<KernelRate> rates;
};

// Returns host, processor, cores, memory and time, without measurements.
Machine describe_machine();

// Return the fastest sequential point, and the one with the fewest bytes in flight within 5 % of it.
const ReadPoint& fastest(const Machine& machine);
const ReadPoint& leanest(const Machine& machine);

std::string to_table(const Machine& machine);
std::string to_toml(const Machine& machine);

}  // namespace tierd
