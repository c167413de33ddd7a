// How well computing overlaps with reading, and with copies between memories, from a timeline.
#pragma once

#include <cstdint>

#include "core/watch/timeline/timeline.h"

namespace tierd {

// Sums over all decode steps that the timeline holds completely. Each time, in ns, is the time with at least
// one slice of its sort, so overlapping slices count once. Time between steps, for example for sampling, is
// left out.
struct PipelineTimes {
  uint64_t steps = 0;
  uint64_t wall_ns = 0;
  uint64_t compute_ns = 0;    // in messages to the agents that compute
  uint64_t predictor_ns = 0;  // predictor calls, such as the top-k of a site's input
  uint64_t busy_ns = 0;       // either of them: reads hide behind this time
  // A read is in flight from the first request to the device until the agent has seen the end of the last one
  // and checked its bytes.
  uint64_t flash_ns = 0;
  uint64_t demand_ns = 0;         // reads that were needed at once
  uint64_t preload_ns = 0;        // reads that were posted ahead, even if a pass waited for them in the end
  uint64_t overlap_ns = 0;        // flash and busy
  uint64_t hidden_ns = 0;         // preload and busy
  uint64_t hideable_ns = 0;       // the sum over the steps of the smaller of preload and busy
  uint64_t copied_ns = 0;         // in moves from one memory into another, as over a GPU's link
  uint64_t copied_beside_ns = 0;  // moves and busy
  uint64_t waited_ns = 0;         // for agents
  uint64_t waited_on_demand_ns = 0;
  // Only reads that ended in these steps are counted here.
  uint64_t demand_bytes = 0, demand_reads = 0;
  uint64_t preload_bytes = 0, preload_reads = 0;
  uint64_t copied_bytes = 0;

  // Returns the hidden share of the preload time; 0 if there is none.
  double hidden_share() const { return share(hidden_ns, preload_ns); }
  // Returns the hidden share of the time that can be hidden: per step the smaller of preload and busy time.
  double hidden_of_hideable() const { return share(hidden_ns, hideable_ns); }

  static double share(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

PipelineTimes pipeline_times(const Timeline& timeline);

}  // namespace tierd
