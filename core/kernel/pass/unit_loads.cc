#include "core/kernel/pass/unit_loads.h"

#include <algorithm>

#include "core/base/check.h"

namespace tierd {

UnitLoads::UnitLoads(size_t sites, const Topology& topology, uint32_t window) : window_(window) {
  TIERD_CHECK(window != 0);
  const std::vector<ComputeUnit>& units = topology.units;
  for (size_t u = 0; u < units.size(); ++u) {
    const auto same = [&](const ComputeUnit& other) {
      return topology.memory(other.memory).name == topology.memory(units[u].memory).name;
    };
    const auto first = static_cast<size_t>(std::ranges::find_if(units, same) - units.begin());
    tier_of_.push_back(first == u ? tiers_++ : tier_of_[first]);
  }
  loads_.resize(sites);
  for (SiteLoad& load : loads_) load.units.resize(units.size()), load.tiers.resize(tiers_);
  windows_.resize(sites, {.passes = 0, .neurons = std::vector<uint64_t>(units.size())});
}

void UnitLoads::add(SiteId site, std::span<UnitPass> units) {
  SiteLoad& load = loads_[site];
  Window& window = windows_[site];
  ++load.passes;
  std::vector<uint64_t> slowest(tiers_);
  for (size_t u = 0; u < units.size(); ++u) {
    const uint64_t ns = units[u].busy.take();
    load.units[u].neurons += units[u].computed_neurons;
    load.units[u].ns += ns;
    window.neurons[u] += units[u].computed_neurons;
    slowest[tier_of_[u]] = std::max(slowest[tier_of_[u]], ns);
  }
  for (uint32_t tier = 0; tier < tiers_; ++tier) load.tiers[tier].slowest_ns += slowest[tier];
  if (++window.passes < window_) return;
  end_window(load, window);
  window.passes = 0;
  std::ranges::fill(window.neurons, 0);
}

void UnitLoads::end_window(SiteLoad& load, const Window& window) const {
  for (uint32_t tier = 0; tier < tiers_; ++tier) {
    uint64_t most = 0, sum = 0, units = 0;
    for (size_t u = 0; u < tier_of_.size(); ++u) {
      if (tier_of_[u] != tier) continue;
      most = std::max(most, window.neurons[u]);
      sum += window.neurons[u];
      ++units;
    }
    if (sum == 0) continue;
    ++load.tiers[tier].windows;
    load.tiers[tier].imbalance_sum += static_cast<double>(most * units) / static_cast<double>(sum);
  }
}

}  // namespace tierd
