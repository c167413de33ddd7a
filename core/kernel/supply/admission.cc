#include "core/kernel/supply/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/kernel/observer.h"
#include "core/kernel/set_view.h"

namespace tierd {

Status Admission::admit(std::span<const uint32_t> missing, FetchList& list) {
  if (missing.empty()) return {};
  const EditionId edition = list.edition;
  const auto n = static_cast<uint32_t>(missing.size());
  const auto fault = [&](const std::string& what) {
    drop(list);
    return cache().fault("admit", what);
  };
  answers_.assign(n, TIERD_VERDICT_BYPASS);
  if (!list.bypass) {
    const tierd_set_view view =
        edition_set(edition, context_.sites.editions[edition], missing.data(), n, 1, TIERD_SET_PREDICTED);
    victims_.resize(n);
    tierd_victims_out out{n, 0, victims_.data()};
    Status asked = cache().call(&tierd_cache_1::admit, "admit", &view, static_cast<int>(list.priority),
                                context_.residency.free_slots(edition), answers_.data(), &out);
    if (!asked.ok()) {
      drop(list);
      return asked;
    }
    if (out.n > n) return fault(fmt::format("{} victims, expected at most {}", out.n, n));
    if (Status evicted = evict(edition, std::span(victims_).first(out.n), "admit"); !evicted.ok()) {
      drop(list);
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
  if (refused != 0 && list.priority == Priority::demand) return fault("refused a neuron of a demand");
  if (kept > context_.residency.free_slots(edition))
    return fault("keeps more neurons than there are free slots and victims");
  list.neurons.reserve(list.neurons.size() + n - refused);
  for (uint32_t i = 0; i < n; ++i) {
    if (answers_[i] == TIERD_VERDICT_REFUSE) continue;
    const bool keep = answers_[i] == TIERD_VERDICT_KEEP;
    if (keep) context_.residency.lease(edition, missing[i]);
    list.neurons.push_back({missing[i], keep});
  }
  return {};
}

Status Admission::admit_wanted(WantedNeurons wanted, FetchList& list) {
  const EditionId edition = wanted.edition;
  std::vector<uint32_t>& neurons = wanted.neurons;
  if (neurons.size() > context_.residency.max_slots(edition)) {
    return cache().fault("fill", fmt::format("lists more neurons of edition {} than it has slots", edition));
  }
  std::erase_if(neurons, [&](uint32_t n) { return context_.residency.slot(edition, n) != kNoSlot; });
  // Neurons of another cache may still have slots. Neurons without room are fetched when a pass misses them.
  neurons.resize(std::min<size_t>(neurons.size(), context_.residency.free_slots(edition)));
  for (const uint32_t neuron : neurons) context_.residency.lease(edition, neuron);
  for (const uint32_t neuron : neurons) list.neurons.push_back({neuron, true});
  return {};
}

void Admission::drop(FetchList& list) {
  for (; !list.done(); ++list.next) {
    const auto [neuron, keep, source] = list.neurons[list.next];
    if (keep) context_.residency.abandon(list.edition, neuron);
  }
}

void Admission::landed(EditionId edition, std::span<const uint32_t> neurons) {
  context_.residency.landed(edition, neurons);
  keep_fault(cache().call_if(&tierd_cache_1::landed, "landed", edition, neurons.data(),
                             static_cast<uint32_t>(neurons.size())));
}

void Admission::failed(EditionId edition, std::span<const uint32_t> neurons) {
  for (const uint32_t neuron : neurons) context_.residency.abandon(edition, neuron);
  tell_dropped(edition, neurons, TIERD_DROPPED_FAILED);
}

void Admission::passed_on(EditionId edition, const ActiveSet& neurons) {
  if (cache().quarantined()) return;  // its fault was returned
  const tierd_set_view set =
      edition_set(edition, context_.sites.editions[edition], neurons, 1, TIERD_SET_TRUE);
  keep_fault(cache().call_if(&tierd_cache_1::touch, "touch", &set));
  if (!cache().quarantined()) keep_fault(expire(edition));
}

Status Admission::expire(EditionId edition) {
  if (cache().table.expire == nullptr) return {};
  const uint32_t n = context_.sites.editions[edition].n;
  if (expired_.size() < n) expired_.resize(n);
  tierd_victims_out out{n, 0, expired_.data()};
  TIERD_TRY(cache().call(&tierd_cache_1::expire, "expire", edition, &out));
  if (out.n > n) return cache().fault("expire", fmt::format("{} victims, expected at most {}", out.n, n));
  return evict(edition, std::span(expired_).first(out.n), "expire");
}

void Admission::shrink(EditionId edition, std::span<const uint32_t> neurons) {
  if (neurons.empty()) return;
  for (const uint32_t neuron : neurons) context_.residency.evict(edition, neuron);
  tell_left(edition, neurons, TIERD_DROPPED_SHRUNK);
}

Status Admission::take_fault() {
  return std::exchange(fault_, Status());
}

// Evicts the victims that `function` of the cache has named. Error: plugin_fault.
Status Admission::evict(EditionId edition, std::span<const tierd_neuron> victims, const char* function) {
  if (victims.empty()) return {};
  evicted_.clear();
  for (const tierd_neuron& victim : victims) {
    if (victim.edition != edition || victim.neuron >= context_.sites.editions[edition].n ||
        !context_.residency.evictable(edition, victim.neuron)) {
      return cache().fault(
          function, fmt::format("victim {} of edition {} cannot be evicted", victim.neuron, victim.edition));
    }
    context_.residency.evict(edition, victim.neuron);
    evicted_.push_back(victim.neuron);
  }
  tell_left(edition, evicted_, TIERD_DROPPED_EVICTED);
  return {};
}

// Tells the observer and the cache that valid neurons have left the arena.
void Admission::tell_left(EditionId edition, std::span<const uint32_t> neurons, int why) {
  context_.counters.evictions += neurons.size();
  KernelObserver* const observer = context_.dispatcher.observer();
  if (observer != nullptr) observer->evicted(context_.id, edition, neurons);
  tell_dropped(edition, neurons, why);
}

void Admission::tell_dropped(EditionId edition, std::span<const uint32_t> neurons, int why) {
  keep_fault(cache().call_if(&tierd_cache_1::dropped, "dropped", edition, neurons.data(),
                             static_cast<uint32_t>(neurons.size()), why));
}

void Admission::keep_fault(const Status& answer) {
  if (fault_.ok()) fault_ = answer;
}

}  // namespace tierd
