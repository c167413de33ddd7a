// Makes a partition by one of the methods and evaluates it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "core/base/enum_names.h"
#include "core/base/result.h"
#include "tools/lab/partition/integer_program.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

enum class PartitionMethod : uint8_t { ilp, greedy, random };
constexpr std::array<std::string_view, 3> names_of(PartitionMethod) {
  return {"ilp", "greedy", "random"};
}

struct PartitionOptions {
  PartitionMethod method = PartitionMethod::ilp;
  uint64_t seed = 1;  // for random
  SolverLimit limit;  // for ilp
};

struct PartitionResult {
  Partition partition;
  PartitionCost cost;
  double bound = 0;    // seconds; a lower limit for all partitions
  double seconds = 0;  // the time to find it
  // Seconds of a token with each method's partition, as far as it was made. Empty: none was found.
  std::optional<double> ilp, greedy, random;
  uint32_t bins = 0;   // of the integer program
  bool homes = false;  // it chose homes too

  // Returns the excess over the bound, as a share of the partition's time.
  double gap() const;
};

// With ilp, returns the better of the integer program's and greedy's partition. `waiting`: see
// partition_by_ilp. Errors: those of check and of the solver; no_space if whole neurons do not fit the DIMMs.
Result<PartitionResult> make_partition(const PartitionProblem& problem, const PartitionOptions& options,
                                       const std::function<void()>& waiting);

}  // namespace tierd
