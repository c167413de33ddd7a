// Improves the choice of hot neurons: a program over bins uses mean frequencies, but neurons are whole.
#pragma once

#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

// In each site one more neuron becomes hot, one fewer, or one in place of another, while this brings the
// times of GPU and DIMMs closer together and the GPU has room. Assumes that the DIMMs share evenly.
void even_out(const PartitionProblem& problem, const FrequencyOrder& order, HotNeurons& hot);

}  // namespace tierd
