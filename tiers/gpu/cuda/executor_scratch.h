// What an executor takes of the device's memory while it computes, beside what the plan has.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/agent/program.h"
#include "core/base/align.h"
#include "core/model/layout/cut.h"

namespace tierd::cuda {

// Sums of runs of so many bytes are kept apart at a time; a token's have room in any case.
inline constexpr uint64_t kPartialBytes = 32 << 20;

inline uint64_t partial_bytes_of_token(const Cut& cut) {
  return divide_up(neurons(cut), run_of(cut)) * outputs(cut) * sizeof(float);
}

// Sums of the runs of a site, whichever needs most.
inline uint64_t partial_bytes(const ComputePlan& plan) {
  uint64_t most = 0;
  for (const SiteWork& site : plan.sites) {
    if (!is_cut_into<Bundles>(site.cut) && !is_cut_into<Columns>(site.cut)) continue;
    const uint64_t of_token = partial_bytes_of_token(site.cut);
    most = std::max(most, std::max(of_token, std::min(kPartialBytes, of_token * plan.max_rows)));
  }
  return most;
}

// What each neuron of each row is multiplied by, of sites cut into columns.
inline uint64_t factor_bytes(const ComputePlan& plan) {
  uint64_t most = 0;
  for (const SiteWork& site : plan.sites) {
    if (is_cut_into<Columns>(site.cut)) most = std::max<uint64_t>(most, neurons(site.cut));
  }
  return most * plan.max_rows * sizeof(float);
}

}  // namespace tierd::cuda
