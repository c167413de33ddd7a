// Device memory that an executor needs while it computes, beside the plan's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/agent/program.h"
#include "core/base/align.h"
#include "core/model/layout/cut.h"

namespace tierd::cuda {

// Bytes for sums of runs that are computed at a time; the sums of one token have room even if they need more.
inline constexpr uint64_t kPartialBytes = 32 << 20;

inline uint64_t partial_bytes_of_token(const Cut& cut) {
  return divide_up(neurons(cut), run_of(cut)) * outputs(cut) * sizeof(float);
}

// Returns the bytes for sums of runs, for the site that needs most.
inline uint64_t partial_bytes(const ComputePlan& plan) {
  uint64_t most = 0;
  for (const SiteWork& site : plan.sites) {
    if (!is_cut_into<Bundles>(site.cut) && !is_cut_into<Columns>(site.cut)) continue;
    const uint64_t of_token = partial_bytes_of_token(site.cut);
    most = std::max(most, std::max(of_token, std::min(kPartialBytes, of_token * plan.max_rows)));
  }
  return most;
}

// Returns the bytes for the factors of each neuron and row, for sites cut into columns.
inline uint64_t factor_bytes(const ComputePlan& plan) {
  uint64_t most = 0;
  for (const SiteWork& site : plan.sites) {
    if (is_cut_into<Columns>(site.cut)) most = std::max<uint64_t>(most, neurons(site.cut));
  }
  return most * plan.max_rows * sizeof(float);
}

}  // namespace tierd::cuda
