// What the kernel counts for reports. Times in ns, sizes in bytes.
#pragma once

#include <cstdint>

namespace tierd {

// Neurons of one memory: those that passes compute from it, and those that memories over it fetch from it.
struct MemoryCounters {
  uint64_t hits = 0;    // valid when they were asked for
  uint64_t staged = 0;  // asked for ahead of time: in staging or on their way
  uint64_t misses = 0;  // neither
  uint64_t evictions = 0;
  uint64_t wasted = 0;  // read ahead and never used
  uint64_t prefetch_failed = 0;
  uint64_t retries = 0;
  uint64_t resident_bytes = 0;  // weights that came from the arena
  uint64_t streamed_bytes = 0;  // weights that had to be fetched
  uint64_t measured_bytes = 0;  // weights computed only to measure what was not predicted

  MemoryCounters& operator+=(const MemoryCounters& other) {
    hits += other.hits, staged += other.staged, misses += other.misses;
    evictions += other.evictions, wasted += other.wasted;
    prefetch_failed += other.prefetch_failed, retries += other.retries;
    resident_bytes += other.resident_bytes, streamed_bytes += other.streamed_bytes;
    measured_bytes += other.measured_bytes;
    return *this;
  }
};

// What was fetched over one link.
struct LinkCounters {
  uint64_t messages = 0;
  uint64_t neurons = 0;
  uint64_t bytes = 0;  // padding included

  LinkCounters& operator+=(const LinkCounters& other) {
    messages += other.messages, neurons += other.neurons, bytes += other.bytes;
    return *this;
  }
};

// The whole run: of what is counted by pass, what units compute from.
struct SchedulerCounters : MemoryCounters {
  uint64_t read_bytes = 0;  // over all links from the store
  uint64_t compute_ns = 0;  // in which at least one unit computed, by their clocks
};

}  // namespace tierd
