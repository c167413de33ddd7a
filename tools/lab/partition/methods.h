// A partition by one of the methods, and what it is worth.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "tools/lab/partition/integer_program.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

enum class PartitionMethod : uint8_t { ilp, greedy, random };
std::string_view name(PartitionMethod method);

struct PartitionOptions {
  PartitionMethod method = PartitionMethod::ilp;
  uint64_t seed = 1;  // of random
  SolverLimit limit;  // of ilp
};

struct PartitionResult {
  Partition partition;
  PartitionCost cost;
  double bound = 0;    // seconds; no partition takes less
  double seconds = 0;  // that finding it took
  // Seconds of a token by each; ilp and the others only where that was the method. Nothing: found none.
  std::optional<double> ilp, greedy, random;
  uint32_t bins = 0;   // of the integer program
  bool homes = false;  // whether it chose homes as well

  // By how much more the partition takes than the bound, as a share of what it takes.
  double gap() const;
};

// By ilp, the better of the integer program's and greedy's is taken. Progress: see partition_by_ilp. Errors:
// those of check and of the solver; no_space where whole neurons do not fill the DIMMs.
Result<PartitionResult> make_partition(const PartitionProblem& problem, const PartitionOptions& options,
                                       const std::function<void()>& waiting);

}  // namespace tierd
