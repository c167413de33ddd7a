// The integer program of Hermes' offline mapping (equations 1 to 7), reduced so that it can be solved:
// neurons of nearly equal frequency are a bin, with a variable for how many of them are hot.
#pragma once

#include <functional>
#include <optional>

#include "core/base/result.h"
#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/integer_program.h"
#include "tools/lab/partition/partition_problem.h"
#include "tools/lab/partition/relaxation.h"

namespace tierd {

struct IlpPartition {
  std::optional<Partition> partition;  // empty: no valid one was found
  double bound = 0;                    // seconds; a lower limit for partitions of whole neurons
  uint32_t bins = 0;                   // variables for hot neurons
  bool homes = false;                  // the program chose homes as well
};

// Bins are single neurons around the point where the relaxation's solution ends in a site, and double in size
// away from it: whole neurons matter there. Homes are dealt afterwards (deal), unless the problem is so small
// that they can be variables too; then the program is the paper's own, without loss. The solution is expanded
// to neurons and checked. `limit` and `waiting`: see IntegerProgram. Error: internal, of the solver.
Result<IlpPartition> partition_by_ilp(const PartitionProblem& problem, const FrequencyOrder& order,
                                      const Relaxation& relaxed, const SolverLimit& limit,
                                      const std::function<void()>& waiting);

}  // namespace tierd
