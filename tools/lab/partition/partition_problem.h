// Which neurons one GPU holds from the start, and which of some DIMMs is the home of each: the offline
// mapping of Hermes (Liu et al., 2025, IV-B). Everything lies on the DIMMs; the GPU has copies of the hot
// neurons and computes those, the others are computed where they lie. No input or output here: tests and the
// tool call it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// The DIMMs are alike. Rates are in bytes a second.
struct PartitionMachine {
  uint64_t gpu_bytes = 0;  // for copies of hot neurons
  double gpu_rate = 0;
  uint32_t dimms = 0;
  uint64_t dimm_bytes = 0;  // of each one; all neurons count there, the hot ones as well
  double dimm_rate = 0;     // of each one
  double sync_seconds = 0;  // one way between DIMMs and GPU; a site takes two of them
};

// Each sparse site is a stage of its own: the GPU and the DIMMs begin it together, and the slowest ends it.
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
  std::vector<uint8_t> hot;    // [neurons] 1: the GPU has a copy, and computes it
};
using Partition = std::vector<SitePartition>;  // [sites]

// What a partition costs, counted neuron by neuron.
struct PartitionCost {
  double seconds = 0;  // sum over the sites of max(T_gpu + 2 T_sync, the longest T_dimm)
  uint64_t gpu_bytes = 0;
  uint64_t dimm_bytes = 0;  // of the fullest one
  double imbalance = 1;     // the busiest DIMM of each site against their mean, both summed over the sites
};

// Errors: invalid_argument where a number makes no sense; no_space where the DIMMs together hold less than
// all neurons.
Status check(const PartitionSite& site);
Status check(const PartitionProblem& problem);

// `partition` has the shape of the problem.
PartitionCost cost_of(const PartitionProblem& problem, const Partition& partition);
bool fits(const PartitionProblem& problem, const PartitionCost& cost);

// Shape and capacities are right; the check that no solver is trusted without.
bool is_partition_of(const PartitionProblem& problem, const Partition& partition);

}  // namespace tierd
