#include "core/kernel/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/kernel/observer.h"
#include "core/kernel/set_view.h"

namespace tierd {

Admission::Admission(const std::vector<Site>& sites, Strategies& strategies, uint16_t unit,
                     Residency& residency, SchedulerCounters& counters, const Dispatcher& dispatcher)
    : sites_(sites),
      strategies_(strategies),
      unit_(unit),
      residency_(residency),
      counters_(counters),
      dispatcher_(dispatcher) {}

Status Admission::admit(SiteId site, std::span<const uint32_t> missing, Priority priority, bool bypass,
                        Plan& plan) {
  if (missing.empty()) return {};
  const auto n = static_cast<uint32_t>(missing.size());
  const SiteId home = domain(site);
  const auto fault = [&](const std::string& what) {
    drop(site, plan);
    return cache().fault("admit", what);
  };
  answers_.assign(n, TIERD_VERDICT_BYPASS);
  if (!bypass) {
    const tierd_set_view view = set_view(home, missing.data(), n, 1, TIERD_SET_PREDICTED);
    victims_.resize(n);
    tierd_victims_out out{n, 0, victims_.data()};
    Status asked = cache().call(&tierd_cache_1::admit, "admit", &view, static_cast<int>(priority),
                                residency_.free_slots(home), answers_.data(), &out);
    if (!asked.ok()) {
      drop(site, plan);
      return asked;
    }
    if (out.n > n) return fault(fmt::format("{} victims for {} neurons", out.n, n));
    if (Status evicted = evict(home, std::span(victims_).first(out.n), "admit"); !evicted.ok()) {
      drop(site, plan);
      return evicted;
    }
  }
  // Nothing is leased before all verdicts are known to be sound.
  uint8_t greatest = 0;
  uint32_t kept = 0;
  uint32_t refused = 0;
  for (const uint8_t verdict : answers_) {
    greatest = std::max(greatest, verdict);
    kept += verdict == TIERD_VERDICT_KEEP ? 1 : 0;
    refused += verdict == TIERD_VERDICT_REFUSE ? 1 : 0;
  }
  if (greatest > TIERD_VERDICT_REFUSE) return fault(fmt::format("verdict {}", greatest));
  if (refused != 0 && priority == Priority::demand) return fault("refused a neuron that is needed now");
  if (kept > residency_.free_slots(home)) return fault("keeps more neurons than it has slots and victims");
  plan.neurons.reserve(plan.neurons.size() + n - refused);
  for (uint32_t i = 0; i < n; ++i) {
    if (answers_[i] == TIERD_VERDICT_REFUSE) continue;
    const bool keep = answers_[i] == TIERD_VERDICT_KEEP;
    if (keep) residency_.lease(home, missing[i]);
    plan.neurons.push_back({missing[i], keep});
  }
  return {};
}

Status Admission::admit_wanted(WantedAtStart wanted, Plan& plan) {
  const SiteId site = wanted.site;
  std::vector<uint32_t>& neurons = wanted.neurons;
  if (neurons.size() > residency_.max_slots(site)) {
    return cache().fault("ahead", fmt::format("more neurons of site {} than it has slots", site));
  }
  std::erase_if(neurons, [&](uint32_t n) { return residency_.slot(site, n) != kNoSlot; });
  // Another cache's neurons may still be in the way: what finds no room comes when it is missed.
  neurons.resize(std::min<size_t>(neurons.size(), residency_.free_slots(site)));
  for (const uint32_t neuron : neurons) residency_.lease(site, neuron);
  for (const uint32_t neuron : neurons) plan.neurons.push_back({neuron, true});
  return {};
}

void Admission::drop(SiteId site, Plan& plan) {
  for (; !plan.done(); ++plan.next) {
    const auto [neuron, keep] = plan.neurons[plan.next];
    if (keep) residency_.abandon(domain(site), neuron);
  }
}

void Admission::landed(SiteId home, std::span<const uint32_t> neurons) {
  residency_.landed(home, neurons);
  keep_fault(cache().call_if(&tierd_cache_1::landed, "landed", home, neurons.data(),
                             static_cast<uint32_t>(neurons.size())));
}

void Admission::failed(SiteId home, std::span<const uint32_t> neurons) {
  for (const uint32_t neuron : neurons) residency_.abandon(home, neuron);
  tell_dropped(home, neurons, TIERD_DROPPED_FAILED);
}

Status Admission::expire(SiteId site) {
  if (cache().table.expire == nullptr) return {};
  const uint32_t n = sites_[site].n;
  if (expired_.size() < n) expired_.resize(n);
  tierd_victims_out out{n, 0, expired_.data()};
  TIERD_TRY(cache().call(&tierd_cache_1::expire, "expire", site, &out));
  if (out.n > n) return cache().fault("expire", fmt::format("{} victims of {} neurons", out.n, n));
  return evict(site, std::span(expired_).first(out.n), "expire");
}

void Admission::shrink(SiteId site, std::span<const uint32_t> neurons) {
  if (neurons.empty()) return;
  for (const uint32_t neuron : neurons) residency_.evict(site, neuron);
  tell_left(site, neurons, TIERD_DROPPED_SHRUNK);
}

Status Admission::take_fault() {
  return std::exchange(fault_, Status());
}

// Victims that `function` of the cache has named.
Status Admission::evict(SiteId home, std::span<const tierd_neuron> victims, const char* function) {
  if (victims.empty()) return {};
  evicted_.clear();
  for (const tierd_neuron& victim : victims) {
    if (victim.site != home || victim.neuron >= sites_[home].n ||
        !residency_.evictable(home, victim.neuron)) {
      return cache().fault(function,
                           fmt::format("victim {} of site {} cannot be evicted", victim.neuron, victim.site));
    }
    residency_.evict(home, victim.neuron);
    evicted_.push_back(victim.neuron);
  }
  tell_left(home, evicted_, TIERD_DROPPED_EVICTED);
  return {};
}

// Neurons that were valid.
void Admission::tell_left(SiteId home, std::span<const uint32_t> neurons, int why) {
  counters_.evictions += neurons.size();
  if (dispatcher_.observer() != nullptr) dispatcher_.observer()->evicted(unit_, home, neurons);
  tell_dropped(home, neurons, why);
}

void Admission::tell_dropped(SiteId home, std::span<const uint32_t> neurons, int why) {
  keep_fault(cache().call_if(&tierd_cache_1::dropped, "dropped", home, neurons.data(),
                             static_cast<uint32_t>(neurons.size()), why));
}

void Admission::keep_fault(const Status& answer) {
  if (fault_.ok()) fault_ = answer;
}

}  // namespace tierd
