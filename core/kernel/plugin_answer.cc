#include "core/kernel/plugin_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tierd {

namespace {

// A list of neurons `idx` [listed] of `n` that there are; NULL: all of them.
Status check_list(const uint32_t* idx, uint32_t listed, uint32_t n) {
  if (idx == nullptr) return {};
  if (listed > n) return Error{Code::plugin_fault, "", fmt::format("{} of {} neurons", listed, n)};
  return check_neurons({idx, listed}, n);
}

void list_neurons(const uint32_t* idx, uint32_t listed, uint32_t n, std::vector<uint32_t>& neurons) {
  if (idx != nullptr) return neurons.assign(idx, idx + listed);
  neurons.resize(n);
  std::iota(neurons.begin(), neurons.end(), 0u);
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

Status check_wish(const tierd_ahead& wish, SiteId site, const SiteTable& sites) {
  const uint64_t place = uint64_t{site} + wish.distance;
  if (wish.site >= sites.size() || wish.distance == 0 || place % sites.size() != wish.site) {
    return Error{Code::plugin_fault, "",
                 fmt::format("site {} does not lie {} sites after {}", wish.site, wish.distance, site)};
  }
  return check_list(wish.idx, wish.n, sites[wish.site].n);
}

void neurons_of(const tierd_ahead& wish, uint32_t n, std::vector<uint32_t>& neurons) {
  list_neurons(wish.idx, wish.n, n, neurons);
}

Result<std::vector<WantedAtStart>> wanted_at_start(Strategy<tierd_cache_1>& cache,
                                                   std::span<const Edition> editions) {
  std::vector<tierd_fetch> items(editions.size());
  tierd_fetch_out out{static_cast<uint32_t>(items.size()), 0, items.data()};
  TIERD_TRY(cache.call_if(&tierd_cache_1::ahead, "ahead", TIERD_NO_SITE, &out));
  if (out.n > items.size())
    return cache.fault("ahead", fmt::format("{} lists where {} have room", out.n, items.size()));
  // All lists are the plugin's, and gone at its next call: they are copied.
  std::vector<WantedAtStart> wanted;
  for (const tierd_fetch& item : std::span(items).first(out.n)) {
    if (item.edition >= editions.size())
      return cache.fault("ahead", fmt::format("edition {} of {}", item.edition, editions.size()));
    const uint32_t n = editions[item.edition].n;
    const Status listed = check_list(item.idx, item.n, n);
    if (!listed.ok()) return cache.fault("ahead", listed.error().detail);
    list_neurons(item.idx, item.n, n, wanted.emplace_back(WantedAtStart{item.edition, {}}).neurons);
  }
  return wanted;
}

Status check_split(Strategy<tierd_cache_1>& cache, const char* function, const SiteTable& sites,
                   uint64_t bytes, std::span<const uint32_t> most, std::span<const uint32_t> slots) {
  uint64_t used = 0;
  for (EditionId e = 0; e < sites.editions.size(); ++e) {
    if (slots[e] > most[e]) {
      return cache.fault(function, fmt::format("{} slots for {}, which can have {}", slots[e],
                                               sites[sites.editions[e].owner].name, most[e]));
    }
    used += uint64_t{slots[e]} * sites.editions[e].slot_bytes;
  }
  if (used > bytes) return cache.fault(function, fmt::format("{} bytes of {}", used, bytes));
  return {};
}

Result<ResizedCache> resized(Strategy<tierd_cache_1>& cache, const SiteTable& sites,
                             const Residency& residency, uint64_t bytes, std::vector<uint32_t> most) {
  const std::vector<Edition>& editions = sites.editions;
  uint32_t valid = 0;
  for (EditionId e = 0; e < editions.size(); ++e) valid += residency.valid_count(e);
  ResizedCache answer{most, std::vector<std::vector<uint32_t>>(editions.size())};
  std::vector<tierd_neuron> victims(valid);
  tierd_victims_out out{valid, 0, victims.data()};
  TIERD_TRY(cache.call(&tierd_cache_1::resize, "resize", bytes, answer.slots.data(), &out));
  TIERD_TRY(check_split(cache, "resize", sites, bytes, most, answer.slots));
  if (out.n > valid) return cache.fault("resize", fmt::format("{} victims of {} neurons", out.n, valid));
  for (const auto [edition, neuron] : std::span(victims).first(out.n)) {
    const bool known = edition < editions.size() && neuron < editions[edition].n;
    if (!known || !residency.evictable(edition, neuron)) {
      return cache.fault("resize", fmt::format("victim {} of edition {} cannot be evicted", neuron, edition));
    }
    answer.victims[edition].push_back(neuron);
  }
  for (EditionId e = 0; e < editions.size(); ++e) {
    std::vector<uint32_t> leaving = answer.victims[e];
    std::sort(leaving.begin(), leaving.end());
    if (const auto twice = std::adjacent_find(leaving.begin(), leaving.end()); twice != leaving.end())
      return cache.fault("resize", fmt::format("victim {} of edition {} is named twice", *twice, e));
    if (const size_t stay = residency.valid_count(e) - leaving.size(); stay > answer.slots[e]) {
      return cache.fault("resize", fmt::format("{} neurons of {} stay in {} slots", stay,
                                               sites[editions[e].owner].name, answer.slots[e]));
    }
  }
  return answer;
}

}  // namespace tierd
