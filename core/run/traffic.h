// What a decode step of a dense model takes from the arenas and what it must fetch, the embedding's row
// aside. Nothing is promised for a cache that does not say beforehand what it keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/block_device.h"
#include "core/kernel/placement.h"
#include "core/run/run_plan.h"

namespace tierd {

struct PlannedTraffic {
  uint64_t computed_bytes = 0;           // by all units, from arenas or not
  uint64_t streamed_bytes = 0;           // read from the store
  std::vector<uint64_t> resident_bytes;  // [memories] that units compute from their arenas
  std::vector<uint64_t> link_bytes;      // [links of the topology] fetched over each
  std::vector<FileRange> streamed;       // from the store, as it lies in its data file, in a step's order

  uint64_t resident() const;  // from all arenas
};

// [memories][editions] ascending neurons that each cache wants before the first step.
using KeptAtStart = std::vector<std::vector<std::vector<uint32_t>>>;

PlannedTraffic plan_traffic(const RunPlan& plan, const Placement& placement, const KeptAtStart& kept);

}  // namespace tierd
