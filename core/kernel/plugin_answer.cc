#include "core/kernel/plugin_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tierd {

namespace {

// The neurons that a wish lists, of a site with `n`.
Status check_list(const tierd_ahead& wish, uint32_t n) {
  if (wish.idx == nullptr) return {};
  if (wish.n > n) return Error{Code::plugin_fault, "", fmt::format("{} of {} neurons", wish.n, n)};
  return check_neurons({wish.idx, wish.n}, n);
}

}  // namespace

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

Status check_wish(const tierd_ahead& wish, SiteId site, const std::vector<Site>& sites) {
  const uint64_t place = uint64_t{site} + wish.distance;
  if (wish.site >= sites.size() || wish.distance == 0 || place % sites.size() != wish.site) {
    return Error{Code::plugin_fault, "",
                 fmt::format("site {} does not lie {} sites after {}", wish.site, wish.distance, site)};
  }
  return check_list(wish, sites[wish.site].n);
}

void neurons_of(const tierd_ahead& wish, uint32_t n, std::vector<uint32_t>& neurons) {
  if (wish.idx != nullptr) return neurons.assign(wish.idx, wish.idx + wish.n);
  neurons.resize(n);
  std::iota(neurons.begin(), neurons.end(), 0u);
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
    const Status listed = check_list(items[i], sites[site].n);
    if (!listed.ok()) return cache.fault("ahead", listed.error().detail);
    neurons_of(items[i], sites[site].n, wanted.emplace_back(WantedAtStart{site, {}}).neurons);
  }
  return wanted;
}

Status check_split(Strategy<tierd_cache_1>& cache, const char* function, const std::vector<Site>& sites,
                   uint64_t bytes, std::span<const uint32_t> most, std::span<const uint32_t> slots) {
  uint64_t used = 0;
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (slots[s] > most[s]) {
      return cache.fault(function,
                         fmt::format("{} slots for {}, which can have {}", slots[s], sites[s].name, most[s]));
    }
    used += uint64_t{slots[s]} * sites[s].slot_bytes;
  }
  if (used > bytes) return cache.fault(function, fmt::format("{} bytes of {}", used, bytes));
  return {};
}

Result<ResizedCache> resized(Strategy<tierd_cache_1>& cache, const std::vector<Site>& sites,
                             const Residency& residency, uint64_t bytes, std::vector<uint32_t> most) {
  uint32_t valid = 0;
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (sites[s].domain == s) valid += residency.valid_count(s);
  }
  ResizedCache answer{most, std::vector<std::vector<uint32_t>>(sites.size())};
  std::vector<tierd_neuron> victims(valid);
  tierd_victims_out out{valid, 0, victims.data()};
  TIERD_TRY(cache.call(&tierd_cache_1::resize, "resize", bytes, answer.slots.data(), &out));
  TIERD_TRY(check_split(cache, "resize", sites, bytes, most, answer.slots));
  if (out.n > valid) return cache.fault("resize", fmt::format("{} victims of {} neurons", out.n, valid));
  for (const tierd_neuron& victim : std::span(victims).first(out.n)) {
    const bool known = victim.site < sites.size() && sites[victim.site].domain == victim.site &&
                       victim.neuron < sites[victim.site].n;
    if (!known || !residency.evictable(victim.site, victim.neuron)) {
      return cache.fault("resize",
                         fmt::format("victim {} of site {} cannot be evicted", victim.neuron, victim.site));
    }
    answer.victims[victim.site].push_back(victim.neuron);
  }
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (sites[s].domain != s) continue;
    std::vector<uint32_t> leaving = answer.victims[s];
    std::sort(leaving.begin(), leaving.end());
    if (const auto twice = std::adjacent_find(leaving.begin(), leaving.end()); twice != leaving.end())
      return cache.fault("resize", fmt::format("victim {} of site {} is named twice", *twice, s));
    if (const size_t stay = residency.valid_count(s) - leaving.size(); stay > answer.slots[s]) {
      return cache.fault(
          "resize", fmt::format("{} neurons of {} stay in {} slots", stay, sites[s].name, answer.slots[s]));
    }
  }
  return answer;
}

}  // namespace tierd
