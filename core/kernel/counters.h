// What the scheduler counts for the report. Times in ns, sizes in bytes.
#pragma once

#include <cstdint>

namespace tierd {

struct SchedulerCounters {
  uint64_t hits = 0;    // neurons valid when their site began
  uint64_t staged = 0;  // asked for ahead of time: in staging or on their way
  uint64_t misses = 0;  // neither
  uint64_t evictions = 0;
  uint64_t wasted = 0;  // neurons read ahead and never used
  uint64_t prefetch_failed = 0;
  uint64_t retries = 0;
  uint64_t resident_bytes = 0;  // weights computed from the arena
  uint64_t streamed_bytes = 0;  // weights computed as they came from flash
  uint64_t measured_bytes = 0;  // weights computed only to measure what was not predicted
  uint64_t read_bytes = 0;      // brought in by reads, padding included
  uint64_t compute_ns = 0;      // in which at least one unit computed, by their clocks
};

}  // namespace tierd
