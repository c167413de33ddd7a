// How fast this machine reads a file without the page cache, through the device that the flash agent uses.
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
  bool random = false;                      // else from the start to the end, and again
  uint64_t seed = 1;                        // of the random places
  double seconds = 1;                       // how long reads are started
  DeviceKind kind = DeviceKind::automatic;
  bool direct = true;  // O_DIRECT
  // The parts that are read, in this order; empty: the whole file.
  std::vector<FileRange> parts = {};
  // 0: each of the reads in flight lands in a place of its own, again and again, so that these stay in
  // caches. Else at random places of so much memory.
  uint64_t memory_bytes = 0;
};

struct ReadRate {
  double bytes_per_second = 0;
  double reads_per_second = 0;
  double thread_seconds = 0;  // of the thread that asks, for each read
  std::string device;         // "io_uring" or "pread"
  uint64_t first = 0;         // sequential: the number of the read to go on with, see `measure_read`
};

// Parts of 1 MiB all over the file, for short measurements at random places: few enough that a list of all
// reads is short, and others with each call, since whoever read them last may still have them (a virtual
// disk's host, a drive's own memory). Errors: io_error; invalid_argument for a file of less than
// `least_bytes` or one part.
Result<std::vector<FileRange>> spread_parts(const std::string& path, uint64_t least_bytes);

// Reads of so many bytes all over the file, through such a device. Errors: those of spread_parts.
Result<ReadPattern> random_reads(const std::string& path, const DeviceOptions& device, uint64_t read_bytes,
                                 uint64_t least_bytes);

// How many reads the disk tells of together. Most tell of each when it ends; a virtual disk may serve what it
// was given, and then tell of all: n reads that are given at once end in a time T, and the first is told of
// at t; of the tries the median of n t / T. Errors: those of spread_parts; io_error.
Result<uint32_t> measure_round(const std::string& path);

// Reads `path` for pattern.seconds. A sequential run starts at read number `first` (of read_bytes each, less
// at the end of a part), so that interleaved short runs do not read the same place again and again. Errors:
// not_found, io_error; invalid_argument for a file with nothing to read, a file with holes (which are not
// read from the disk), parts beyond its end or a size that direct I/O cannot read.
Result<ReadRate> measure_read(const std::string& path, const ReadPattern& pattern, uint64_t first = 0);

}  // namespace tierd
