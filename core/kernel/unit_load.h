// The work that units have done, counted from the runs that they completed, in passes that do not bypass the
// caches (those of decoding). Times in ns, by the agents' clock.
#pragma once

#include <cstdint>
#include <vector>

#include "core/report/figure.h"

namespace tierd {

// The work of one unit in the passes of one site.
struct UnitWork {
  uint64_t neurons = 0;  // computed neurons, summed over the passes
  uint64_t ns = 0;       // time with a run under way; overlapping runs count once
};

// The work of a tier's units in the passes of one site. They work in parallel; a pass waits for the slowest.
struct TierWork {
  uint64_t slowest_ns = 0;   // of the slowest unit of each pass, summed over the passes
  uint64_t windows = 0;      // complete windows in which the tier computed
  double imbalance_sum = 0;  // over the windows: neurons of the most loaded unit / mean of all units

  // Returns the mean over the windows; 0 if there are none.
  double imbalance() const { return windows == 0 ? 0 : imbalance_sum / static_cast<double>(windows); }
};

struct SiteLoad {
  uint64_t passes = 0;
  std::vector<UnitWork> units;  // [units]
  std::vector<TierWork> tiers;  // [tiers that compute], see UnitLoads::tier_of
};

// Passes in which no unit computes from the memories that another memory fetches from (IdleSources), and the
// moves made in them.
struct IdleCounters {
  uint64_t windows = 0;    // such passes
  uint64_t ns = 0;         // time in them while none of those units ran anything
  uint64_t moves = 0;      // messages
  uint64_t neurons = 0;    // neurons moved
  uint64_t bytes = 0;      // bytes moved, padding included
  uint64_t move_ns = 0;    // the sum of the messages' times
  uint64_t hidden_ns = 0;  // the part of move_ns that lies in `ns`

  static constexpr auto figures() {
    using F = IdleCounters;
    return std::tuple(Basis{&F::windows}, Basis{&F::ns}, Basis{&F::moves}, Basis{&F::neurons},
                      Basis{&F::bytes}, Basis{&F::move_ns}, Basis{&F::hidden_ns});
  }
};

}  // namespace tierd
