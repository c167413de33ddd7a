// The bytes of a decode step of a dense model from the arenas and over the links, without the embedding's
// row. Not accurate for a cache that does not announce the neurons that it keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/block_device.h"
#include "core/kernel/placement.h"
#include "core/run/run_plan.h"

namespace tierd {

struct PlannedTraffic {
  uint64_t computed_bytes = 0;           // by all units, resident or not
  uint64_t streamed_bytes = 0;           // read from the store
  std::vector<uint64_t> resident_bytes;  // [memories] bytes that units compute from their arenas
  std::vector<uint64_t> link_bytes;      // [links of the topology] bytes fetched over each
  std::vector<FileRange> streamed;       // ranges of the store's data file, in a step's order

  uint64_t resident() const;  // of all arenas
};

// [memories][editions] ascending neurons that each cache wants before the first step.
using KeptAtStart = std::vector<std::vector<std::vector<uint32_t>>>;

PlannedTraffic plan_traffic(const RunPlan& plan, const Placement& placement, const KeptAtStart& kept);

}  // namespace tierd
