#include "core/kernel/plugin_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tierd {

namespace {

// Checks the list of a wish; there are `n` neurons.
Status check_list(const WishList& wishes, const WishList::Wish& wish, uint32_t n) {
  if (wish.all) return {};
  if (wish.n > n)
    return Error{Code::plugin_fault, "", fmt::format("{} neurons, expected at most {}", wish.n, n)};
  TIERD_TRY(check_scores(wishes.scores(wish)));
  return check_neurons(wishes.neurons(wish), n);
}

Status check_wish(const WishList& wishes, const WishList::Wish& wish, SiteId site, const SiteTable& sites,
                  const Topology& topology) {
  const auto nonsense = [](std::string what) { return Error{Code::plugin_fault, "", std::move(what)}; };
  const uint64_t place = uint64_t{site} + wish.distance;
  if (wish.site >= sites.size() || wish.distance == 0 || place % sites.size() != wish.site)
    return nonsense(
        fmt::format("site {} is not the one {} sites after site {}", wish.site, wish.distance, site));
  if (wish.edition != TIERD_NO_EDITION && sites.wanted(wish.site, wish.edition) == kNoEdition)
    return nonsense(fmt::format("site {} has no edition {}", wish.site, wish.edition));
  if (wish.memory != TIERD_NO_MEMORY && (wish.memory == kStore || wish.memory > topology.memories.size()))
    return nonsense(fmt::format("memory {}, expected 1 to {}", wish.memory, topology.memories.size()));
  return check_list(wishes, wish, sites[wish.site].n);
}

// Returns the neurons of a wish that names an edition and no site.
Result<WantedNeurons> wanted_by(StrategyBase& strategy, const char* function, const WishList::Wish& wish,
                                std::span<const Edition> editions, const Memory& memory) {
  if (wish.site != TIERD_NO_SITE) return strategy.fault(function, "a wish names a site, expected none");
  if (wish.edition >= editions.size())
    return strategy.fault(
        function, fmt::format("edition {}, expected a number below {}", wish.edition, editions.size()));
  if (!memory.holds(wish.edition))
    return strategy.fault(
        function, fmt::format("edition {}, which memory '{}' does not hold", wish.edition, memory.name));
  const uint32_t n = editions[wish.edition].n;
  const Status listed = check_list(*strategy.wishes, wish, n);
  if (!listed.ok()) return strategy.fault(function, listed.error().detail);
  WantedNeurons wanted{wish.edition, {}};
  neurons_of(*strategy.wishes, wish, n, wanted.neurons);
  return wanted;
}

// Returns the wishes of a cache, all of them for the cache's own memory.
Result<std::vector<WantedNeurons>> wanted_here(StrategyBase& cache, const char* function,
                                               std::span<const Edition> editions, const Memory& memory) {
  std::vector<WantedNeurons> all;
  for (const WishList::Wish& wish : cache.wishes->all()) {
    if (wish.memory != TIERD_NO_MEMORY)
      return cache.fault(function,
                         "a wish names a memory, expected none, since it applies to the cache's own");
    TIERD_ASSIGN(all.emplace_back(), wanted_by(cache, function, wish, editions, memory));
  }
  return all;
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

Status check_scores(std::span<const float> scores) {
  const auto bad = std::ranges::find_if(scores, [](float score) { return !std::isfinite(score); });
  if (bad == scores.end()) return {};
  return Error{Code::plugin_fault, "",
               fmt::format("score {} at place {}: expected a finite number", *bad, bad - scores.begin())};
}

Status check_wishes(const WishList& wishes, SiteId site, const SiteTable& sites, const Topology& topology) {
  for (const WishList::Wish& wish : wishes.all()) TIERD_TRY(check_wish(wishes, wish, site, sites, topology));
  return {};
}

Status check_wishes(StrategyBase& strategy, const char* function, SiteId site, const SiteTable& sites,
                    const Topology& topology) {
  const Status sound = check_wishes(*strategy.wishes, site, sites, topology);
  return sound.ok() ? Status() : strategy.fault(function, sound.error().detail);
}

void neurons_of(const WishList& wishes, const WishList::Wish& wish, uint32_t n,
                std::vector<uint32_t>& neurons) {
  if (!wish.all) {
    const std::span<const uint32_t> listed = wishes.neurons(wish);
    return neurons.assign(listed.begin(), listed.end());
  }
  neurons.resize(n);
  std::iota(neurons.begin(), neurons.end(), 0u);
}

Result<std::vector<WantedNeurons>> wanted_at_start(Strategy<tierd_cache_1>& cache,
                                                   std::span<const Edition> editions, const Memory& memory) {
  if (cache.table.fill == nullptr) return std::vector<WantedNeurons>();
  TIERD_TRY(cache.call_for_wishes(&tierd_cache_1::fill, "fill"));
  return wanted_here(cache, "fill", editions, memory);
}

Result<std::vector<WantedNeurons>> wanted_meanwhile(Strategy<tierd_cache_1>& cache, SiteId site,
                                                    std::span<const Edition> editions, const Memory& memory) {
  if (cache.table.idle == nullptr) return std::vector<WantedNeurons>();
  TIERD_TRY(cache.call_for_wishes(&tierd_cache_1::idle, "idle", site));
  return wanted_here(cache, "idle", editions, memory);
}

Result<std::vector<WantedHome>> wanted_homes(Strategy<tierd_balancer_1>& balancer, SiteId site,
                                             std::span<const Edition> editions, const Topology& topology) {
  constexpr const char* kFunction = "rebalance";
  std::vector<WantedHome> homes;
  if (balancer.table.rebalance == nullptr) return homes;
  TIERD_TRY(balancer.call_for_wishes(&tierd_balancer_1::rebalance, kFunction, site));
  for (const WishList::Wish& wish : balancer.wishes->all()) {
    const bool known = wish.memory != kStore && wish.memory <= topology.memories.size();
    const auto memory = static_cast<MemoryId>(known ? wish.memory : kStore);
    if (!known || topology.unit_of(memory) == kNoUnit)
      return balancer.fault(kFunction, "a wish names a memory from which no unit computes");
    WantedHome& home = homes.emplace_back(WantedHome{memory, {}});
    TIERD_ASSIGN(home.wanted, wanted_by(balancer, kFunction, wish, editions, topology.memory(memory)));
  }
  return homes;
}

Status check_split(Strategy<tierd_cache_1>& cache, const char* function, const SiteTable& sites,
                   uint64_t bytes, std::span<const uint32_t> most, std::span<const uint32_t> slots) {
  uint64_t used = 0;
  for (EditionId e = 0; e < sites.editions.size(); ++e) {
    if (slots[e] > most[e]) {
      return cache.fault(function, fmt::format("{} slots for {}, expected at most {}", slots[e],
                                               sites[sites.editions[e].owner].name, most[e]));
    }
    used += uint64_t{slots[e]} * sites.editions[e].slot_bytes;
  }
  if (used > bytes) return cache.fault(function, fmt::format("{} bytes, expected at most {}", used, bytes));
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
  if (out.n > valid)
    return cache.fault("resize", fmt::format("{} victims, expected at most {}", out.n, valid));
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
      return cache.fault("resize", fmt::format("{} neurons of {} stay, but it has {} slots", stay,
                                               sites[editions[e].owner].name, answer.slots[e]));
    }
  }
  return answer;
}

}  // namespace tierd
