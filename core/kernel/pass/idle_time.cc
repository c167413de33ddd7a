#include "core/kernel/pass/idle_time.h"

#include <algorithm>

namespace tierd {

void IdleTime::add_window(const Interval& window, std::vector<Interval> runs) {
  const auto& [begin, end] = window;
  ++counters_.windows;
  std::ranges::sort(runs);
  uint64_t idle_since = begin;
  for (const auto& [run_begin, run_end] : runs) {
    if (run_begin >= end) break;
    add_idle(idle_since, run_begin);
    idle_since = std::max(idle_since, run_end);
  }
  add_idle(idle_since, end);
}

void IdleTime::add_idle(uint64_t begin_ns, uint64_t end_ns) {
  if (begin_ns >= end_ns) return;
  counters_.ns += end_ns - begin_ns;
  idle_.emplace_back(begin_ns, end_ns);
  if (idle_.size() > kMostIntervals) idle_.pop_front();
}

void IdleTime::add_moves(std::span<const SpareMove> moves) {
  for (const SpareMove& move : moves) {
    ++counters_.moves;
    counters_.neurons += move.neurons;
    counters_.bytes += move.bytes;
    counters_.move_ns += move.done_ns - move.start_ns;
    for (const auto& [begin, end] : idle_) {
      const uint64_t from = std::max(begin, move.start_ns), to = std::min(end, move.done_ns);
      if (from < to) counters_.hidden_ns += to - from;
    }
  }
}

}  // namespace tierd
