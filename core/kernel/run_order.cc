#include "core/kernel/run_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tierd {

RunOrder::RunOrder(const std::vector<Site>& sites) : sites_(sites) {
  for (const Site& site : sites) {
    if (!site.friends.empty() && site.n > kept_.size()) kept_.resize(site.n);
  }
}

void RunOrder::sort(SiteId s, Plan& plan) {
  const Site& site = sites_[s];
  const uint32_t of_run = partial_neurons(site.axis);
  std::sort(plan.neurons.begin(), plan.neurons.end(), [of_run](const Planned& a, const Planned& b) {
    return std::tuple(a.neuron / of_run, a.keep, a.neuron) < std::tuple(b.neuron / of_run, b.keep, b.neuron);
  });
  if (site.friends.empty()) return;
  for (const Planned& planned : plan.neurons) kept_[planned.neuron] = planned.keep ? 1 : 0;
  ordered_.clear();
  for (const Planned& planned : plan.neurons) {
    if (!planned.keep) {
      ordered_.push_back(planned);
      continue;
    }
    if (kept_[planned.neuron] == 0) continue;  // it came earlier
    for (const uint32_t neuron : {planned.neuron, site.friends[planned.neuron]}) {
      if (std::exchange(kept_[neuron], uint8_t{0}) != 0) ordered_.push_back({neuron, true});
    }
  }
  plan.neurons.swap(ordered_);
}

}  // namespace tierd
