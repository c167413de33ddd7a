// The last touch on which neurons are hot: a program over bins knows means, and neurons are whole.
#pragma once

#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

// In each site, as long as GPU and DIMMs come closer to being ready together by it, and the GPU has room: one
// more neuron becomes hot, one fewer, or one in the place of another. The DIMMs are taken to share evenly.
void even_out(const PartitionProblem& problem, const FrequencyOrder& order, HotNeurons& hot);

}  // namespace tierd
