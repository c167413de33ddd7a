// The offline mapping of Hermes (Liu et al., 2025, IV-B): which neurons a GPU holds from the start, and which
// DIMM is the home of each. All neurons are on the DIMMs; the GPU has copies of the hot neurons and computes
// those, the DIMMs compute the others. Without input and output, so that tests and the tool share it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// The DIMMs are identical. Rates are in bytes per second.
struct PartitionMachine {
  uint64_t gpu_bytes = 0;  // for copies of hot neurons
  double gpu_rate = 0;
  uint32_t dimms = 0;
  uint64_t dimm_bytes = 0;  // of each; all neurons count, including the hot ones
  double dimm_rate = 0;     // of each
  double sync_seconds = 0;  // one way between DIMMs and GPU; a site takes two
};

// Each sparse site is a stage: the GPU and the DIMMs begin it together, and the slowest ends it.
struct PartitionSite {
  std::string name;
  uint64_t neuron_bytes = 0;
  std::vector<float> frequency;  // [neurons] share of the tokens for which it is active, 0 to 1
};

struct PartitionProblem {
  PartitionMachine machine;
  std::vector<PartitionSite> sites;

  uint64_t all_bytes() const;
};

struct SitePartition {
  std::vector<uint32_t> home;  // [neurons] number of the DIMM
  std::vector<uint8_t> hot;    // [neurons] 1: the GPU has a copy and computes it
};
using Partition = std::vector<SitePartition>;  // [sites]

// The cost of a partition, computed neuron by neuron.
struct PartitionCost {
  double seconds = 0;  // sum over the sites of max(T_gpu + 2 T_sync, the longest T_dimm)
  uint64_t gpu_bytes = 0;
  uint64_t dimm_bytes = 0;  // of the fullest
  double imbalance = 1;     // the busiest DIMM of each site over their mean, both summed over the sites
};

// Errors: invalid_argument for a number out of range; no_space if the DIMMs together are too small.
Status check(const PartitionSite& site);
Status check(const PartitionProblem& problem);

// `partition` must have the shape of the problem.
PartitionCost cost_of(const PartitionProblem& problem, const Partition& partition);
bool fits(const PartitionProblem& problem, const PartitionCost& cost);

// Returns whether shape and capacities are right; checks every solver's result.
bool is_partition_of(const PartitionProblem& problem, const Partition& partition);

}  // namespace tierd
