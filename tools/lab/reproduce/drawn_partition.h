// The offline partition of Hermes for a run whose activity is drawn.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/run/run_plan.h"

namespace tierd {

// Makes a partition between the GPU of the tier "gpu", with the memory that the plan gives its cache, and the
// DIMMs of the tier "ndp", on the machine of the run's description, and writes it in tier-partition's format
// (tools/lab/partition/partition_file.h).
//
// Neurons are ordered by their activity in `texts` texts that the run's profile draws of the same model, none
// of which the run uses. Errors: invalid_argument, if the run draws no activity, or the plan or its machine
// has no such tiers; those of read_activity_profile, read_machine, make_partition and write_partition.
Status write_drawn_partition(const RunPlan& plan, const std::string& activity, uint32_t texts,
                             const std::string& path);

}  // namespace tierd
