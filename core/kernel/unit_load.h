// The work that units have really done, counted from the runs that they completed: in passes that do not
// bypass the caches, which are those of decoding. Times in ns, by the agents' clock.
#pragma once

#include <cstdint>
#include <vector>

namespace tierd {

// The work of one unit in the passes of one site.
struct UnitWork {
  uint64_t neurons = 0;  // that it has computed, summed over the passes
  uint64_t ns = 0;       // with a run under way; runs side by side count once
};

// The work of a tier's units in the passes of one site. They work side by side, and the pass waits for the
// slowest.
struct TierWork {
  uint64_t slowest_ns = 0;   // of the slowest unit of each pass, summed over the passes
  uint64_t windows = 0;      // whole windows in which the tier computed anything
  double imbalance_sum = 0;  // over the windows: neurons of the most loaded unit / mean of all units

  // Returns the mean over the windows; 0 where there are none.
  double imbalance() const { return windows == 0 ? 0 : imbalance_sum / static_cast<double>(windows); }
};

struct SiteLoad {
  uint64_t passes = 0;
  std::vector<UnitWork> units;  // [units]
  std::vector<TierWork> tiers;  // [tiers that compute], see UnitLoads::tier_of
};

// The passes in which no unit computes from the memories that another memory fetches from (IdleSources), and
// the moves that were made in them because nothing waits for these.
struct IdleCounters {
  uint64_t windows = 0;    // such passes
  uint64_t ns = 0;         // in them, while none of those units ran anything
  uint64_t moves = 0;      // messages
  uint64_t neurons = 0;    // that came with them
  uint64_t bytes = 0;      // likewise, padding included
  uint64_t move_ns = 0;    // the sum of the messages' times
  uint64_t hidden_ns = 0;  // of those times, the part that lies in `ns`
};

}  // namespace tierd
