#include "tools/lab/partition/relaxation.h"

#include <algorithm>

#include "tools/lab/partition/hottest_first.h"

namespace tierd {
namespace {

// The rounding error of sums of a million terms in double precision: the bound must not exceed the optimum.
constexpr double kRounding = 1e-12;

}  // namespace

Relaxation relax(const PartitionProblem& problem, const FrequencyOrder& order) {
  const PartitionMachine& machine = problem.machine;
  const double dimms_rate = machine.dimm_rate * machine.dimms;
  const size_t n = problem.sites.size();
  std::vector<double> all(n, 0);     // work of a site: the sum of its frequencies
  std::vector<double> wanted(n, 0);  // the GPU's part of it at which both end together
  for (size_t s = 0; s < n; ++s) {
    const auto bytes = static_cast<double>(problem.sites[s].neuron_bytes);
    for (const float frequency : problem.sites[s].frequency) all[s] += static_cast<double>(frequency);
    const double sooner = all[s] * bytes / dimms_rate - 2 * machine.sync_seconds;
    wanted[s] = std::max(0.0, sooner / (bytes / machine.gpu_rate + bytes / dimms_rate));
  }
  Relaxation relaxed;
  relaxed.hot.assign(n, 0);
  std::vector<double> taken(n, 0);
  auto left = static_cast<double>(machine.gpu_bytes);
  hottest_first(problem, order, [&](size_t s, uint32_t place) {
    const double frequency = problem.sites[s].frequency[order[s][place]];
    const auto bytes = static_cast<double>(problem.sites[s].neuron_bytes);
    if (frequency == 0 || left <= 0) return false;
    const double part = std::min({1.0, left / bytes, std::max(0.0, wanted[s] - taken[s]) / frequency});
    left -= part * bytes;
    taken[s] += part * frequency;
    relaxed.hot[s] += part;
    return part == 1;
  });
  for (size_t s = 0; s < n; ++s) {
    const auto bytes = static_cast<double>(problem.sites[s].neuron_bytes);
    relaxed.seconds += std::max(taken[s] * bytes / machine.gpu_rate + 2 * machine.sync_seconds,
                                (all[s] - taken[s]) * bytes / dimms_rate);
  }
  relaxed.seconds *= 1 - kRounding;
  return relaxed;
}

}  // namespace tierd
