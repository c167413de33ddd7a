// Counters for reports. Times in ns, sizes in bytes.
#pragma once

#include <cstdint>

#include "core/report/figure.h"

namespace tierd {

// The requests that a memory received.
struct UseCounters {
  uint64_t hits = 0, staged = 0, misses = 0;
  uint64_t resident_bytes = 0, streamed_bytes = 0, measured_bytes = 0;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = UseCounters;
    return std::tuple(
        Figure{&F::hits, "hits", count, sum, "neurons that were valid when requested"},
        Figure{&F::staged, "staged", count, sum, "neurons that were read ahead: landed or on their way"},
        Figure{&F::misses, "misses", count, sum, "neurons that were neither"},
        Figure{&F::resident_bytes, "resident_bytes", bytes, sum, "weights in the arena"},
        Figure{&F::streamed_bytes, "streamed_bytes", bytes, sum, "weights that had to be fetched"},
        Figure{&F::measured_bytes, "measured_bytes", bytes, sum, "weights computed only to measure"});
  }
};

// The counters of one memory; the inherited ones count passes that compute from it.
struct MemoryCounters : UseCounters {
  UseCounters passed_on;  // requests of memories over this one
  uint64_t evictions = 0, wasted = 0, prefetch_failed = 0, retries = 0;

  // Returns the sum of both.
  UseCounters asked() const {
    UseCounters all = *this;
    add_figures(all, passed_on);
    return all;
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = MemoryCounters;
    return std::tuple_cat(
        UseCounters::figures(),
        std::tuple(Figure{&F::passed_on, "passed_on", parts, sum, "requests of memories over this one"},
                   Figure{&F::evictions, "evictions", count, sum, "neurons that were dropped"},
                   Figure{&F::wasted, "wasted", count, sum, "neurons that were read ahead and never used"},
                   Figure{&F::prefetch_failed, "prefetch_failed", count, sum, "reads ahead that failed"},
                   Figure{&F::retries, "retries", count, sum, "reads that were tried again"}));
  }
};

// The traffic of one link.
struct LinkCounters {
  uint64_t messages = 0, neurons = 0;
  uint64_t bytes = 0;          // payload and padding
  uint64_t payload_bytes = 0;  // of `bytes`: the neurons' weights as they cross the link
  uint64_t busy_ns = 0;        // time with a message under way, by the agent's clock

  uint64_t padding_bytes() const { return bytes - payload_bytes; }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = LinkCounters;
    return std::tuple(
        Figure{&F::messages, "messages", count, sum, "messages that fetched neurons"},
        Figure{&F::neurons, "neurons", count, sum, "neurons that crossed the link"},
        Figure{&F::bytes, "bytes", Quantity::bytes, sum, "bytes that crossed it, padding included"},
        Figure{&F::payload_bytes, "payload_bytes", Quantity::bytes, sum, "bytes of weights that crossed it"},
        Figure{&F::padding_bytes, "padding_bytes", Quantity::bytes, derived, "the bytes that are no weights"},
        Basis{&F::busy_ns});
  }
};

// The counters of the whole run. Weights that pass through several memories on their way to a unit count
// once, at the memory that the unit computes from.
struct SchedulerCounters : MemoryCounters {
  uint64_t read_bytes = 0;  // over all links from the store
  uint64_t compute_ns = 0;  // time in which at least one unit computed, by their clocks

  static constexpr auto figures() {
    using F = SchedulerCounters;
    return std::tuple_cat(
        MemoryCounters::figures(),
        std::tuple(
            Figure{&F::read_bytes, "read_bytes", Quantity::bytes, Adds::sum, "of links from the store"},
            Figure{&F::compute_ns, "compute_ns", Quantity::ns, Adds::sum, "while a unit computed"}));
  }
};

}  // namespace tierd
