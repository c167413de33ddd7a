#include "core/kernel/plugin_answer.h"

#include <fmt/format.h>

#include <numeric>

namespace tierd {

Status check_neurons(std::span<const uint32_t> neurons, uint32_t n) {
  for (size_t i = 0; i < neurons.size(); ++i) {
    if (neurons[i] >= n || (i > 0 && neurons[i] <= neurons[i - 1])) {
      return Error{
          Code::plugin_fault, "",
          fmt::format("neuron {} at place {}: expected ascending numbers below {}", neurons[i], i, n)};
    }
  }
  return {};
}

Status neurons_of(const tierd_ahead& wish, uint32_t n, std::vector<uint32_t>& neurons) {
  neurons.clear();
  if (wish.idx == nullptr) {
    neurons.resize(n);
    std::iota(neurons.begin(), neurons.end(), 0u);
    return {};
  }
  if (wish.n > n) return Error{Code::plugin_fault, "", fmt::format("{} of {} neurons", wish.n, n)};
  const std::span<const uint32_t> listed(wish.idx, wish.n);
  TIERD_TRY(check_neurons(listed, n));
  neurons.assign(listed.begin(), listed.end());
  return {};
}

Result<std::vector<WantedAtStart>> wanted_at_start(Strategy<tierd_cache_1>& cache,
                                                   const std::vector<Site>& sites) {
  std::vector<tierd_ahead> items(sites.size());
  tierd_ahead_out out{static_cast<uint32_t>(items.size()), 0, items.data()};
  TIERD_TRY(cache.call_if(&tierd_cache_1::ahead, "ahead", TIERD_NO_SITE, &out));
  if (out.n > items.size()) {
    return cache.fault("ahead", fmt::format("{} wishes where {} have room", out.n, items.size()));
  }
  // All lists are the plugin's, and gone at its next call: they are copied.
  std::vector<WantedAtStart> wanted;
  for (uint32_t i = 0; i < out.n; ++i) {
    const SiteId site = items[i].site;
    if (site >= sites.size() || sites[site].domain != site) {
      return cache.fault("ahead", fmt::format("site {} has no residency of its own", site));
    }
    std::vector<uint32_t> neurons;
    const Status listed = neurons_of(items[i], sites[site].n, neurons);
    if (!listed.ok()) return cache.fault("ahead", listed.error().detail);
    wanted.push_back({site, std::move(neurons)});
  }
  return wanted;
}

}  // namespace tierd
