// Counters of an agent since its start; those that do not apply stay 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tierd {

// Reads are counted by size: [i] counts reads of 4 KiB << i and more, the last element all larger ones.
inline constexpr size_t kReadSizes = 12;
inline constexpr uint64_t kLeastReadSize = 4096;

struct ReadCounts {
  uint64_t bytes = 0;           // of extents that landed without a wrong checksum
  uint64_t extents = 0;         // number of these
  uint64_t verified_bytes = 0;  // of extents whose checksum was computed and right
  uint64_t asked_bytes = 0;     // of extents whose read was started
  uint64_t read_bytes = 0;      // delivered by the device, repeats included
  uint64_t wasted_bytes = 0;    // read but part of no requested extent: alignment and gaps
  uint64_t reads = 0;           // submitted to the device, continuations and repeats included
  uint64_t reads_of_size[kReadSizes] = {};
  uint64_t joined = 0;           // extents fetched by a neighbour's read
  uint64_t short_reads = 0;      // continued
  uint64_t retries = 0;          // after EINTR, EAGAIN, no bytes, or EINVAL of a continuation
  uint64_t failed_extents = 0;   // io_error, corrupt, invalid_argument
  uint64_t dropped_extents = 0;  // cancelled or expired before they were started
  uint64_t checksum_ns = 0;
  uint64_t copy_ns = 0;       // copying extents from the bounce buffer to their destination
  uint64_t expand_ns = 0;     // expanding compressed extents to their destination
  uint64_t in_flight_ns = 0;  // time with at least one read in the device

  // Agents read in parallel; their times are added, too.
  ReadCounts& operator+=(const ReadCounts& other) {
    bytes += other.bytes;
    extents += other.extents;
    verified_bytes += other.verified_bytes;
    asked_bytes += other.asked_bytes;
    read_bytes += other.read_bytes;
    wasted_bytes += other.wasted_bytes;
    reads += other.reads;
    for (size_t i = 0; i < kReadSizes; ++i) reads_of_size[i] += other.reads_of_size[i];
    joined += other.joined;
    short_reads += other.short_reads;
    retries += other.retries;
    failed_extents += other.failed_extents;
    dropped_extents += other.dropped_extents;
    checksum_ns += other.checksum_ns;
    copy_ns += other.copy_ns;
    expand_ns += other.expand_ns;
    in_flight_ns += other.in_flight_ns;
    return *this;
  }
};

struct ComputeCounts {
  uint64_t shared_work = 0;    // pieces of work done by more than one thread
  uint64_t threads_woken = 0;  // of these, those that woke a parked thread
  // Error of quantized activations: sqrt(sum of squared errors / sum of squares); 0 if none were quantized.
  double activation_error = 0;

  ComputeCounts& operator+=(const ComputeCounts& other) {
    shared_work += other.shared_work;
    threads_woken += other.threads_woken;
    activation_error = activation_error > other.activation_error ? activation_error : other.activation_error;
    return *this;
  }
};

// Bytes that a device whose memory is apart has moved from host memory.
struct MoveCounts {
  uint64_t read_in_place = 0;  // read by the device from registered memory
  uint64_t gathered = 0;       // first copied by the host into pinned blocks

  MoveCounts& operator+=(const MoveCounts& other) {
    read_in_place += other.read_in_place;
    gathered += other.gathered;
    return *this;
  }
};

// Runs of a device to which the host submits each launch.
struct RunCounts {
  uint64_t runs = 0;
  uint64_t captured = 0;  // of these, runs launched as one graph

  RunCounts& operator+=(const RunCounts& other) {
    runs += other.runs;
    captured += other.captured;
    return *this;
  }
};

struct AgentCounts {
  ReadCounts read;
  ComputeCounts compute;
  MoveCounts move;
  RunCounts run;

  // Takes the greatest error of activations, and the sums of all other counters.
  AgentCounts& operator+=(const AgentCounts& other) {
    read += other.read;
    compute += other.compute;
    move += other.move;
    run += other.run;
    return *this;
  }
};
static_assert(std::is_trivially_copyable_v<AgentCounts>);

}  // namespace tierd
