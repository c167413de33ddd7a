// Walks over the neurons of all sites by falling frequency.
#pragma once

#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "tools/lab/partition/dealing.h"
#include "tools/lab/partition/partition_problem.h"

namespace tierd {

// Calls `take(site, place)` for the neuron order[site][place]; it returns whether it takes more of that site.
template <class Take>
void hottest_first(const PartitionProblem& problem, const FrequencyOrder& order, const Take& take) {
  struct Next {
    float frequency;
    size_t site;
    uint32_t place;
    // At equal frequency the earlier site's neuron is first.
    bool operator<(const Next& other) const {
      return std::tuple(frequency, other.site) < std::tuple(other.frequency, site);
    }
  };
  std::priority_queue<Next> queue;
  const auto push = [&](size_t site, uint32_t place) {
    if (place < order[site].size())
      queue.push({problem.sites[site].frequency[order[site][place]], site, place});
  };
  for (size_t site = 0; site < order.size(); ++site) push(site, 0);
  while (!queue.empty()) {
    const Next next = queue.top();
    queue.pop();
    if (take(next.site, next.place)) push(next.site, next.place + 1);
  }
}

}  // namespace tierd
