#include "tools/lab/partition/partition_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/units.h"

namespace tierd {
namespace {

Error wrong(const std::string& origin, std::string detail) {
  return {Code::invalid_argument, origin, std::move(detail)};
}

bool is_rate(double value) {
  return std::isfinite(value) && value > 0;
}

}  // namespace

uint64_t PartitionProblem::all_bytes() const {
  uint64_t all = 0;
  for (const PartitionSite& site : sites) all += site.neuron_bytes * site.frequency.size();
  return all;
}

Status check(const PartitionSite& site) {
  if (site.neuron_bytes == 0 || site.neuron_bytes > UINT32_MAX) {
    return wrong(site.name, fmt::format("its neurons take {} bytes, 1 to {} were expected", site.neuron_bytes,
                                        UINT32_MAX));
  }
  if (site.frequency.empty() || site.frequency.size() > UINT32_MAX) {
    return wrong(site.name,
                 fmt::format("it has {} neurons, 1 to {} were expected", site.frequency.size(), UINT32_MAX));
  }
  const auto bad =
      std::ranges::find_if(site.frequency, [](float value) { return !(value >= 0 && value <= 1); });
  if (bad == site.frequency.end()) return {};
  return wrong(site.name, fmt::format("neuron {} has a frequency of {}, 0 to 1 was expected",
                                      bad - site.frequency.begin(), *bad));
}

Status check(const PartitionProblem& problem) {
  const PartitionMachine& machine = problem.machine;
  if (!is_rate(machine.gpu_rate)) return wrong("--gpu-bandwidth", "must be above 0");
  if (!is_rate(machine.dimm_rate)) return wrong("--dimm-bandwidth", "must be above 0");
  if (machine.dimms == 0) return wrong("--dimms", "there must be one at least");
  if (!std::isfinite(machine.sync_seconds) || machine.sync_seconds < 0)
    return wrong("--sync", "must be 0 or more");
  if (problem.sites.empty()) return wrong("sites", "there are none to divide");
  for (const PartitionSite& site : problem.sites) TIERD_TRY(check(site));
  const auto all = static_cast<double>(problem.all_bytes());
  const double room = static_cast<double>(machine.dimm_bytes) * machine.dimms;
  if (all <= room) return {};
  return Error{Code::no_space, "--dimm-bytes",
               fmt::format("{} DIMMs of {} hold less than the {} of all neurons", machine.dimms,
                           format_bytes(static_cast<double>(machine.dimm_bytes)), format_bytes(all))};
}

PartitionCost cost_of(const PartitionProblem& problem, const Partition& partition) {
  const PartitionMachine& machine = problem.machine;
  PartitionCost cost;
  std::vector<uint64_t> held(machine.dimms, 0);
  double busiest = 0, mean = 0;
  for (size_t s = 0; s < problem.sites.size(); ++s) {
    const PartitionSite& site = problem.sites[s];
    double gpu = 0;
    std::vector<double> dimms(machine.dimms, 0);
    for (size_t i = 0; i < site.frequency.size(); ++i) {
      const uint32_t home = partition[s].home[i];
      held[home] += site.neuron_bytes;
      if (partition[s].hot[i] != 0) cost.gpu_bytes += site.neuron_bytes;
      (partition[s].hot[i] != 0 ? gpu : dimms[home]) += static_cast<double>(site.frequency[i]);
    }
    const auto bytes = static_cast<double>(site.neuron_bytes);
    const double most = std::ranges::max(dimms);
    cost.seconds +=
        std::max(gpu * bytes / machine.gpu_rate + 2 * machine.sync_seconds, most * bytes / machine.dimm_rate);
    busiest += most * bytes;
    for (const double load : dimms) mean += load * bytes / machine.dimms;
  }
  cost.dimm_bytes = std::ranges::max(held);
  if (mean > 0) cost.imbalance = busiest / mean;
  return cost;
}

bool fits(const PartitionProblem& problem, const PartitionCost& cost) {
  return cost.gpu_bytes <= problem.machine.gpu_bytes && cost.dimm_bytes <= problem.machine.dimm_bytes;
}

bool is_partition_of(const PartitionProblem& problem, const Partition& partition) {
  if (partition.size() != problem.sites.size()) return false;
  for (size_t s = 0; s < partition.size(); ++s) {
    const size_t n = problem.sites[s].frequency.size();
    if (partition[s].home.size() != n || partition[s].hot.size() != n) return false;
    if (std::ranges::any_of(partition[s].home, [&](uint32_t d) { return d >= problem.machine.dimms; }))
      return false;
  }
  return fits(problem, cost_of(problem, partition));
}

}  // namespace tierd
