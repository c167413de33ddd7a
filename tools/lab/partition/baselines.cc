#include "tools/lab/partition/baselines.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/lab/partition/hottest_first.h"

namespace tierd {
namespace {

HotNeurons none_hot(const PartitionProblem& problem) {
  HotNeurons hot;
  for (const PartitionSite& site : problem.sites) hot.emplace_back(site.frequency.size(), uint8_t{0});
  return hot;
}

}  // namespace

std::optional<Partition> partition_greedily(const PartitionProblem& problem, const FrequencyOrder& order) {
  HotNeurons hot = none_hot(problem);
  uint64_t left = problem.machine.gpu_bytes;
  hottest_first(problem, order, [&](size_t site, uint32_t place) {
    const uint64_t bytes = problem.sites[site].neuron_bytes;
    if (bytes > left) return false;
    left -= bytes;
    hot[site][order[site][place]] = 1;
    return true;
  });
  return deal(problem, order, hot);
}

std::optional<Partition> partition_at_random(const PartitionProblem& problem, uint64_t seed) {
  Random random(seed);
  std::vector<std::pair<uint32_t, uint32_t>> neurons;  // site, number
  for (uint32_t s = 0; s < problem.sites.size(); ++s) {
    for (uint32_t i = 0; i < problem.sites[s].frequency.size(); ++i) neurons.emplace_back(s, i);
  }
  HotNeurons hot = none_hot(problem);
  uint64_t left = problem.machine.gpu_bytes;
  for (size_t i = neurons.size(); i > 0; --i) {
    std::swap(neurons[i - 1], neurons[random.below(static_cast<uint32_t>(i))]);
    const auto [site, neuron] = neurons[i - 1];
    const uint64_t bytes = problem.sites[site].neuron_bytes;
    if (bytes > left) continue;
    left -= bytes;
    hot[site][neuron] = 1;
  }
  return deal_at_random(problem, hot, random);
}

}  // namespace tierd
