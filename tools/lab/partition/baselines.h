// Simple partitions with which the integer program is compared.
#pragma once

#include <optional>

#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

// Makes hot, while they fit, the neurons that save the DIMMs most time for each byte of the GPU, and deals
// the others by LPT. A neuron's time is its frequency times its bytes over a rate, so its saving per byte is
// its frequency, whatever its size. The GPU's time in a site is not considered. Empty if neurons cannot be
// dealt (see deal).
std::optional<Partition> partition_greedily(const PartitionProblem& problem, const FrequencyOrder& order);

// Chooses hot neurons and homes at random, as many hot ones as fit: Hermes-random of the paper's ablation.
std::optional<Partition> partition_at_random(const PartitionProblem& problem, uint64_t seed);

}  // namespace tierd
