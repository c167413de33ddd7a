// The same problem with divisible neurons, and DIMMs that share each site's work evenly: a lower bound for
// whole neurons that sorting alone can solve.
//
// Why: the time of a site depends only on the work that the GPU takes from the DIMMs, and falls until both
// end together. The hottest neurons take a given amount of work in the fewest bytes, so each site's time is a
// convex function of its bytes, with the frequency of its next neuron as the slope. With one capacity over
// all sites, the optimum is to give bytes always to the steepest slope.
#pragma once

#include <vector>

#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

struct Relaxation {
  double seconds = 0;       // a lower limit for all partitions
  std::vector<double> hot;  // [sites] how many of the hottest neurons are hot, the last one in part
};

Relaxation relax(const PartitionProblem& problem, const FrequencyOrder& order);

}  // namespace tierd
