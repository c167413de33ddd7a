// What the integer program is compared with.
#pragma once

#include <optional>

#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

// The neurons that save the DIMMs most time for each byte of the GPU, as long as they fit; the others by LPT.
// A neuron's time is its frequency times its bytes over a rate, so what it saves a byte is its frequency,
// whatever its size. It does not look at whether the GPU has more to do in a site than the DIMMs. Nothing
// where neurons cannot be dealt (see deal).
std::optional<Partition> partition_greedily(const PartitionProblem& problem, const FrequencyOrder& order);

// Hot neurons and homes by chance, as many hot ones as fit: Hermes-random of the paper's ablation.
std::optional<Partition> partition_at_random(const PartitionProblem& problem, uint64_t seed);

}  // namespace tierd
