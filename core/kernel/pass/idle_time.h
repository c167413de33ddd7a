// Measures how long the windows of IdleSources are, and how much of the time of moves they hide.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/kernel/post/busy_time.h"
#include "core/kernel/supply/spare_time.h"
#include "core/kernel/unit_load.h"

namespace tierd {

class IdleTime {
 public:
  using Interval = BusyTime::Interval;

  // Adds a window that is over. `runs`: when units that compute from the sources ran, in any order; these
  // parts of the window are not idle.
  void add_window(const Interval& window, std::vector<Interval> runs);
  // Adds finished moves. The windows that began before the end of a move have been added.
  void add_moves(std::span<const SpareMove> moves);
  const IdleCounters& counters() const { return counters_; }

 private:
  // Only the latest intervals are kept; a move that began before them counts as hidden behind these alone.
  static constexpr size_t kMostIntervals = 256;

  void add_idle(uint64_t begin_ns, uint64_t end_ns);

  IdleCounters counters_;
  std::deque<Interval> idle_;  // the latest, disjoint, ascending
};

}  // namespace tierd
