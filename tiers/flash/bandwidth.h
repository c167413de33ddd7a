// Measures how fast a file is read without the page cache, through the device that the flash agent uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tiers/flash/device.h"

namespace tierd {

struct ReadPattern {
  uint64_t read_bytes = uint64_t{1} << 20;  // multiple of 4096
  uint32_t depth = 32;                      // reads in flight
  bool random = false;                      // false: sequential, from the start to the end and again
  uint64_t seed = 1;                        // for the random offsets
  double seconds = 1;                       // new reads start during this time
  DeviceKind kind = DeviceKind::automatic;
  bool direct = true;  // O_DIRECT
  // The parts that are read, in this order; empty: the whole file.
  std::vector<FileRange> parts = {};
  // 0: each read in flight has a destination of its own, which is reused, so that destinations stay in
  // caches. Else the destinations are random in memory of this size.
  uint64_t memory_bytes = 0;
};

struct ReadRate {
  double bytes_per_second = 0;
  double reads_per_second = 0;
  double thread_seconds = 0;  // of the calling thread, for each read
  std::string device;         // "io_uring" or "pread"
  uint64_t first = 0;         // sequential: the number of the read to continue with, see `measure_read`
};

// Returns parts of 1 MiB all over the file, for short measurements at random offsets: few enough that the
// list of all reads is short, and different in each call, since a cache below (the host of a virtual disk, a
// drive's own memory) may still hold the last ones. Errors: io_error; invalid_argument for a file of less
// than `least_bytes` or one part.
Result<std::vector<FileRange>> spread_parts(const std::string& path, uint64_t least_bytes);

// Returns a pattern of reads of `read_bytes` all over the file. Errors: those of spread_parts.
Result<ReadPattern> random_reads(const std::string& path, const DeviceOptions& device, uint64_t read_bytes,
                                 uint64_t least_bytes);

// Returns how many reads the disk completes together. Most disks report each read when it ends; a virtual
// disk may serve a whole batch and then report all: n reads that start together end in a time T, and the
// first is reported at t; the result is the median of n t / T over several tries. Errors: those of
// spread_parts; io_error.
Result<uint32_t> measure_round(const std::string& path);

// Reads `path` for pattern.seconds. A sequential run starts at read number `first` (of read_bytes each, less
// at the end of a part), so that interleaved short runs do not read the same place again and again. Errors:
// not_found, io_error; invalid_argument for an empty file, a file with holes (which are not read from the
// disk), parts beyond its end or a size that direct I/O cannot read.
Result<ReadRate> measure_read(const std::string& path, const ReadPattern& pattern, uint64_t first = 0);

}  // namespace tierd
