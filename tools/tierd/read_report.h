// The part of a report on flash: reads, the trend of reads in decode, and the overlap of reading with
// computing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/agent/counts.h"
#include "core/run/runtime.h"
#include "core/watch/timeline/pipeline.h"
#include "tools/tierd/report_lines.h"
#include "tools/tierd/trend.h"

namespace tierd {

struct ReadFigures : ReadCounts {
  double busy_bytes_per_second() const {
    return in_flight_ns == 0 ? 0 : static_cast<double>(read_bytes) * 1e9 / static_cast<double>(in_flight_ns);
  }
  // Returns counts by the least size of a read: "16384".
  std::map<std::string, uint64_t> sizes() const;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = ReadFigures;
    return std::tuple(
        Figure{&F::bytes, "bytes", Quantity::bytes, sum, "landed with the right checksum"},
        Figure{&F::extents, "extents", count, sum, "landed with the right checksum"},
        Figure{&F::verified_bytes, "verified_bytes", Quantity::bytes, sum,
               "bytes whose checksum was computed"},
        Figure{&F::asked_bytes, "asked_bytes", Quantity::bytes, sum, "of extents whose read was started"},
        Figure{&F::read_bytes, "read_bytes", Quantity::bytes, sum,
               "delivered by the device, repeats included"},
        Figure{&F::wasted_bytes, "wasted_bytes", Quantity::bytes, sum, "read for alignment and gaps"},
        Figure{&F::reads, "reads", count, sum, "submitted to the device, repeats included"},
        Figure{&F::sizes, "reads_of_size", count, derived, "by least size: reads from there to the next"},
        Figure{&F::joined, "joined", count, sum, "extents fetched by a neighbour's read"},
        Figure{&F::short_reads, "short_reads", count, sum, "reads that were continued"},
        Figure{&F::retries, "retries", count, sum, "reads after EINTR, EAGAIN or no bytes"},
        Figure{[](const F& f) { return ms_each(f.checksum_ns, 1); }, "checksum_ms", ms, derived, "checking"},
        Figure{[](const F& f) { return ms_each(f.in_flight_ns, 1); }, "busy_ms", ms, derived,
               "time with a read in the device"},
        Figure{&F::busy_bytes_per_second, "busy_bytes_per_second", bytes_per_second, derived, "while busy"},
        Basis{&F::reads_of_size}, Basis{&F::checksum_ns}, Basis{&F::copy_ns}, Basis{&F::expand_ns},
        Basis{&F::in_flight_ns});
  }
};

// "flash" of a report.
struct FlashFigures {
  ReadFigures reads;
  uint64_t gap_bytes = 0;
  std::string gap_from;
  bool bounced = false;
  std::string bounced_from;
  uint64_t system_read_bytes = 0;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = FlashFigures;
    return std::tuple(
        Figure{&F::reads, "", parts, sum, ""},
        Figure{&F::gap_bytes, "gap_bytes", bytes, latest, "the longest gap that is read through"},
        Figure{&F::gap_from, "gap_from", text, latest, "the source of gap_bytes"},
        Figure{&F::bounced, "bounced", flag, latest, "all reads land in the bounce buffer"},
        Figure{&F::bounced_from, "bounced_from", text, latest, "the reason for bounced"},
        Figure{&F::system_read_bytes, "system_read_bytes", bytes, sum, "read from disks, by the system"});
  }
};
FlashFigures flash_figures(const Runtime& runtime, const ReadCounts& flash, uint64_t disk_bytes_before);
// Returns the bytes that the system has read from disks for this process (/proc/self/io), without hits of the
// page cache; 0 where the file is not available.
uint64_t system_read_bytes();

// Bytes read by decode steps after the first ones: growing, falling or constant.
struct TrendFigures {
  uint64_t skipped_steps = 0;
  uint64_t steps = 0;
  Trend bytes;

  static constexpr auto figures() {
    using F = TrendFigures;
    return std::tuple(Figure{&F::skipped_steps, "skipped_steps", Quantity::count, Adds::latest,
                             "steps in which caches fill"},
                      Figure{&F::steps, "steps", Quantity::count, Adds::latest, "after these"},
                      Figure{&F::bytes, "", Quantity::parts, Adds::latest, ""});
  }
};
TrendFigures trend_figures(const std::vector<uint64_t>& read_bytes);

// Returns the lines on reads, trend, gaps and the bounce buffer.
ReportLines flash_lines(const FlashFigures& flash, const TrendFigures& trend);

// The overlap of reading with computing, per decode step.
struct PipelineFigures {
  uint64_t slices = 0;
  uint64_t forgotten = 0;
  PipelineTimes times;

  double ms(uint64_t ns) const { return ms_each(ns, times.steps); }
  template <auto M>
  static double step_ms(const PipelineFigures& of) {
    return of.ms(of.times.*M);
  }
  template <auto M>
  static double each(const PipelineFigures& of) {
    return per(of.times.*M, of.times.steps);
  }
  static constexpr auto times_figures() {
    using enum Adds;
    using F = PipelineFigures;
    using T = PipelineTimes;
    constexpr Quantity ms = Quantity::ms;
    return std::tuple(
        Figure{&F::step_ms<&T::wall_ns>, "step_ms", ms, derived, "a step"},
        Figure{&F::step_ms<&T::compute_ns>, "compute_ms", ms, derived, "in messages to computing agents"},
        Figure{&F::step_ms<&T::predictor_ns>, "predictor_ms", ms, derived, "in calls of the predictor"},
        Figure{&F::step_ms<&T::busy_ns>, "busy_ms", ms, derived, "computing or predicting"},
        Figure{&F::step_ms<&T::flash_ns>, "flash_ms", ms, derived, "with a read in flight"},
        Figure{&F::step_ms<&T::demand_ns>, "demand_ms", ms, derived, "with a read that was needed at once"},
        Figure{&F::step_ms<&T::preload_ns>, "preload_ms", ms, derived, "with a read that was posted ahead"},
        Figure{&F::step_ms<&T::overlap_ns>, "overlap_ms", ms, derived, "flash and busy"},
        Figure{&F::step_ms<&T::hidden_ns>, "hidden_ms", ms, derived, "preload and busy"},
        Figure{&F::step_ms<&T::hideable_ns>, "hideable_ms", ms, derived, "lesser of preload and busy"},
        Figure{&F::step_ms<&T::copied_ns>, "copy_ms", ms, derived, "in moves between memories"},
        Figure{&F::step_ms<&T::copied_beside_ns>, "copy_overlap_ms", ms, derived, "moves and busy"},
        Figure{&F::step_ms<&T::waited_ns>, "wait_ms", ms, derived, "waiting for agents"},
        Figure{&F::step_ms<&T::waited_on_demand_ns>, "wait_on_demand_ms", ms, derived, "waiting for reads"});
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = PipelineFigures;
    using T = PipelineTimes;
    return std::tuple_cat(
        times_figures(),
        std::tuple(
            Basis{&F::times, latest}, Figure{&F::slices, "slices", count, latest, "of the timeline"},
            Figure{&F::forgotten, "forgotten", count, latest, "slices before these"},
            Figure{[](const F& f) { return f.times.steps; }, "steps", count, derived, "recorded whole"},
            Figure{[](const F& f) { return f.times.hidden_share(); }, "hidden_share", share, derived,
                   "hidden_ms of preload_ms"},
            Figure{[](const F& f) { return f.times.hidden_of_hideable(); }, "hidden_of_hideable", share,
                   derived, "hidden_ms of hideable_ms"},
            Figure{&F::each<&T::copied_bytes>, "copied_bytes", bytes, derived, "by moves, a step"},
            Figure{&F::each<&T::demand_bytes>, "demand_bytes", bytes, derived, "needed at once, a step"},
            Figure{&F::each<&T::demand_reads>, "demand_reads", count, derived, "needed at once, a step"},
            Figure{&F::each<&T::preload_bytes>, "preload_bytes", bytes, derived, "posted ahead, a step"},
            Figure{&F::each<&T::preload_reads>, "preload_reads", count, derived, "posted ahead, a step"}));
  }
};
PipelineFigures pipeline_figures(const Timeline& timeline);
std::string pipeline_text(const PipelineFigures& p);

}  // namespace tierd
