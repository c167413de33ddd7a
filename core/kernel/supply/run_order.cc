#include "core/kernel/supply/run_order.h"

#include <algorithm>
#include <tuple>

namespace tierd {

void sort_by_runs(const Site& site, Plan& plan) {
  const uint32_t of_run = site.run;
  std::sort(plan.neurons.begin(), plan.neurons.end(), [of_run](const Planned& a, const Planned& b) {
    return std::tuple(a.neuron / of_run, a.keep, a.neuron) < std::tuple(b.neuron / of_run, b.keep, b.neuron);
  });
}

}  // namespace tierd
