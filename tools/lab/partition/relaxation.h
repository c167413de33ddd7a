// The same problem with neurons that can be divided, and DIMMs that share each site's work evenly: nothing
// that whole neurons can do is faster, and it takes sorting alone to solve.
//
// Why: how long a site takes depends only on how much work the GPU takes off the DIMMs, and falls until both
// are ready together. The hottest neurons take off a given amount in the fewest bytes, so each site's time is
// a convex function of the bytes that it gets, with the frequency of its next neuron as the slope. With one
// capacity over all sites, the best is to give bytes to whichever slope is the steepest.
#pragma once

#include <vector>

#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

struct Relaxation {
  double seconds = 0;       // no partition takes less
  std::vector<double> hot;  // [sites] how many of the hottest neurons are hot, the last one in part
};

Relaxation relax(const PartitionProblem& problem, const FrequencyOrder& order);

}  // namespace tierd
