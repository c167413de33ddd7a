// Counters for reports. Times in ns, sizes in bytes.
#pragma once

#include <cstdint>

namespace tierd {

// The requests that a memory received.
struct UseCounters {
  uint64_t hits = 0;            // neurons that were valid when requested
  uint64_t staged = 0;          // neurons that were read ahead: in staging or on their way
  uint64_t misses = 0;          // neither
  uint64_t resident_bytes = 0;  // weights in the arena
  uint64_t streamed_bytes = 0;  // weights that had to be fetched
  uint64_t measured_bytes = 0;  // weights computed only to measure unpredicted neurons

  UseCounters& operator+=(const UseCounters& other) {
    hits += other.hits, staged += other.staged, misses += other.misses;
    resident_bytes += other.resident_bytes, streamed_bytes += other.streamed_bytes;
    measured_bytes += other.measured_bytes;
    return *this;
  }
};

// The counters of one memory; the inherited ones count passes that compute from it.
struct MemoryCounters : UseCounters {
  UseCounters passed_on;  // requests of memories over this one
  uint64_t evictions = 0;
  uint64_t wasted = 0;  // neurons that were read ahead and never used
  uint64_t prefetch_failed = 0;
  uint64_t retries = 0;

  UseCounters asked() const { return UseCounters(*this) += passed_on; }  // sum of both
  MemoryCounters& operator+=(const MemoryCounters& other) {
    UseCounters::operator+=(other);
    passed_on += other.passed_on;
    evictions += other.evictions, wasted += other.wasted;
    prefetch_failed += other.prefetch_failed, retries += other.retries;
    return *this;
  }
};

// The traffic of one link.
struct LinkCounters {
  uint64_t messages = 0;
  uint64_t neurons = 0;
  uint64_t bytes = 0;          // payload and padding
  uint64_t payload_bytes = 0;  // of `bytes`: the neurons' weights as they cross the link
  uint64_t busy_ns = 0;        // time with a message under way, by the agent's clock

  uint64_t padding_bytes() const { return bytes - payload_bytes; }
  LinkCounters& operator+=(const LinkCounters& other) {
    messages += other.messages, neurons += other.neurons, bytes += other.bytes;
    payload_bytes += other.payload_bytes, busy_ns += other.busy_ns;
    return *this;
  }
};

// The counters of the whole run. Weights that pass through several memories on their way to a unit count
// once, at the memory that the unit computes from.
struct SchedulerCounters : MemoryCounters {
  uint64_t read_bytes = 0;  // over all links from the store
  uint64_t compute_ns = 0;  // time in which at least one unit computed, by their clocks
};

}  // namespace tierd
