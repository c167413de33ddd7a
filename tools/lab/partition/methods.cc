#include "tools/lab/partition/methods.h"

#include <algorithm>
#include <utility>

#include "core/base/time.h"
#include "tools/lab/partition/baselines.h"
#include "tools/lab/partition/ilp.h"
#include "tools/lab/partition/relaxation.h"

namespace tierd {

double PartitionResult::gap() const {
  return cost.seconds > 0 ? std::max(0.0, 1 - bound / cost.seconds) : 0;
}

Result<PartitionResult> make_partition(const PartitionProblem& problem, const PartitionOptions& options,
                                       const std::function<void()>& waiting) {
  TIERD_TRY(check(problem));
  const uint64_t begin_ns = now_ns();
  const FrequencyOrder order = order_by_frequency(problem);
  const Relaxation relaxed = relax(problem, order);
  PartitionResult result;
  result.bound = relaxed.seconds;
  bool found = false;
  // Returns the cost of a method's partition, which becomes the result if it is the best so far.
  const auto offer = [&](std::optional<Partition> partition) -> std::optional<double> {
    if (!partition) return std::nullopt;
    const PartitionCost cost = cost_of(problem, *partition);
    if (!found || cost.seconds < result.cost.seconds) {
      result.partition = *std::move(partition);
      result.cost = cost;
      found = true;
    }
    return cost.seconds;
  };
  if (options.method == PartitionMethod::ilp) {
    TIERD_ASSIGN(IlpPartition ilp, partition_by_ilp(problem, order, relaxed, options.limit, waiting));
    result.bound = std::max(result.bound, ilp.bound);
    result.bins = ilp.bins;
    result.homes = ilp.homes;
    result.ilp = offer(std::move(ilp.partition));
  }
  if (options.method != PartitionMethod::random) result.greedy = offer(partition_greedily(problem, order));
  if (options.method != PartitionMethod::greedy)
    result.random = offer(partition_at_random(problem, options.seed));
  if (!found) {
    return Error{Code::no_space, "--dimm-bytes",
                 "whole neurons do not fill the DIMMs so tightly; they need more room"};
  }
  result.seconds = static_cast<double>(now_ns() - begin_ns) * 1e-9;
  return result;
}

}  // namespace tierd
