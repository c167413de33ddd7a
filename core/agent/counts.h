// Counters of an agent since its start; those that do not apply stay 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tierd {

// Reads are counted by size: [i] counts reads of 4 KiB << i and more, the last element all larger ones.
inline constexpr size_t kReadSizes = 12;
inline constexpr uint64_t kLeastReadSize = 4096;

// `Count`: uint64_t, or Counter in the agent that counts.
template <class Count>
struct ReadCountsOf {
  Count bytes{};           // of extents that landed without a wrong checksum
  Count extents{};         // number of these
  Count verified_bytes{};  // of extents whose checksum was computed and right
  Count asked_bytes{};     // of extents whose read was started
  Count read_bytes{};      // delivered by the device, repeats included
  Count wasted_bytes{};    // read but part of no requested extent: alignment and gaps
  Count reads{};           // submitted to the device, continuations and repeats included
  Count reads_of_size[kReadSizes] = {};
  Count joined{};           // extents fetched by a neighbour's read
  Count short_reads{};      // continued
  Count retries{};          // after EINTR, EAGAIN, no bytes, or EINVAL of a continuation
  Count failed_extents{};   // io_error, corrupt, invalid_argument
  Count dropped_extents{};  // cancelled or expired before they were started
  Count checksum_ns{};
  Count copy_ns{};       // copying extents from the bounce buffer to their destination
  Count expand_ns{};     // expanding compressed extents to their destination
  Count in_flight_ns{};  // time with at least one read in the device

  // Calls each(count, count of the other) for all of them.
  template <class Other, class Each>
  void with(const Other& other, Each each) {
    each(bytes, other.bytes);
    each(extents, other.extents);
    each(verified_bytes, other.verified_bytes);
    each(asked_bytes, other.asked_bytes);
    each(read_bytes, other.read_bytes);
    each(wasted_bytes, other.wasted_bytes);
    each(reads, other.reads);
    each(joined, other.joined);
    each(short_reads, other.short_reads);
    each(retries, other.retries);
    each(failed_extents, other.failed_extents);
    each(dropped_extents, other.dropped_extents);
    each(checksum_ns, other.checksum_ns);
    each(copy_ns, other.copy_ns);
    each(expand_ns, other.expand_ns);
    each(in_flight_ns, other.in_flight_ns);
    for (size_t i = 0; i < kReadSizes; ++i) each(reads_of_size[i], other.reads_of_size[i]);
  }
  // Agents read in parallel; their times are added, too.
  ReadCountsOf& operator+=(const ReadCountsOf& other) {
    with(other, [](Count& to, const Count& more) { to += more; });
    return *this;
  }
};
using ReadCounts = ReadCountsOf<uint64_t>;

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
