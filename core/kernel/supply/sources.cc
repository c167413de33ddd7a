#include "core/kernel/supply/sources.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/kernel/supply/transfer.h"

namespace tierd {
namespace {

// Neurons that these transfers move from the offer.
std::vector<uint32_t> moved_from(const Offer& below, std::span<Transfer* const> moving) {
  std::vector<uint32_t> neurons;
  for (const Transfer* transfer : moving) {
    if (transfer->below == &below)
      neurons.insert(neurons.end(), transfer->neurons.begin(), transfer->neurons.end());
  }
  return neurons;
}

}  // namespace

Sources::Sources(const SupplyContext& context, std::span<SourceMemory* const> memories)
    : context_(context), memories_(memories) {
  const MemoryId over = context.memory().over;
  TIERD_CHECK(over < context.id);
  bool reached = false;
  for (const Link& link : context.topology.links) {
    if (link.to != context.id) continue;
    if (link.from == over) {
      over_ = static_cast<uint8_t>(sources_.size());
      reached = true;
    }
    sources_.push_back(link.from);
  }
  TIERD_CHECK_MSG(reached, "no link leads from a memory to the one that lies over it");
  store_alone_ = sources_.size() == 1 && sources_.front() == kStore;
}

Status Sources::find(FetchList& list) {
  if (store_alone_ || list.done()) return {};
  std::vector<std::vector<uint32_t>> wanted(sources_.size());
  for (ToFetch& of : std::span(list.neurons).subspan(list.next)) {
    of.source = nearest(list.edition, of.neuron);
    wanted[of.source].push_back(of.neuron);
  }
  list.below.assign(sources_.size(), nullptr);
  for (size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s] == kStore || wanted[s].empty()) continue;
    std::ranges::sort(wanted[s]);
    auto below = memory(s).offer({.purpose = {list.purpose.site, list.purpose.step, context_.id},
                                  .edition = list.edition,
                                  .wanted = ActiveSet::of(std::move(wanted[s])),
                                  .priority = list.priority,
                                  .bypass = list.bypass});
    if (!below.ok()) {
      leave(list);
      return below.error();
    }
    list.below[s] = *below;
    list.below[s]->hold();
  }
  drop_refused(list);
  if (list.any_order) {
    const auto later = [&](const ToFetch& of) {
      const Offer* const below = list.below[of.source];
      return std::pair(below != nullptr && !below->here(of.neuron), of.source);
    };
    std::ranges::stable_sort(std::span(list.neurons).subspan(list.next), {}, later);
  }
  return {};
}

void Sources::drop_refused(FetchList& list) {
  const auto refused = [&](const ToFetch& of) {
    const Offer* const below = list.below[of.source];
    if (below == nullptr || !std::ranges::binary_search(below->refused(), of.neuron)) return false;
    if (of.keep) context_.residency.abandon(list.edition, of.neuron);
    return true;
  };
  const auto from = list.neurons.begin() + static_cast<std::ptrdiff_t>(list.next);
  list.neurons.erase(std::remove_if(from, list.neurons.end(), refused), list.neurons.end());
}

bool Sources::holds(MemoryId memory, EditionId edition, uint32_t neuron) const {
  return memory == kStore || memories_[memory - 1u]->holds(edition, neuron);
}

uint8_t Sources::nearest(EditionId edition, uint32_t neuron) const {
  const auto found = std::ranges::find_if(sources_, [&](MemoryId of) { return holds(of, edition, neuron); });
  return found == sources_.end() ? over_ : static_cast<uint8_t>(found - sources_.begin());
}

bool Sources::next_to(EditionId edition, uint32_t neuron) const {
  return std::ranges::any_of(sources_,
                             [&](MemoryId of) { return of != kStore && holds(of, edition, neuron); });
}

void Sources::leave(FetchList& list) {
  let_go(list, true, {});
}

void Sources::hand_over(FetchList& list, std::span<Transfer* const> moving) {
  let_go(list, false, moving);
}

void Sources::let_go(FetchList& list, bool gives_up, std::span<Transfer* const> moving) {
  for (size_t s = 0; s < list.below.size(); ++s) {
    Offer* const below = std::exchange(list.below[s], nullptr);
    if (below == nullptr) continue;
    if (below->let_go() == 0) {
      memory(s).close(*below, gives_up);
    } else {
      below->stop();
      if (!gives_up) below->release_all_but(moved_from(*below, moving));
    }
  }
  list.below.clear();
}

void Sources::leave(Transfer& transfer) {
  Offer* const below = std::exchange(transfer.below, nullptr);
  if (below == nullptr) return;
  below->took(transfer.neurons);
  if (below->let_go() == 0) memory(transfer.source).close(*below, true);
}

void Sources::fetch() {
  for (size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s] != kStore) memory(s).fetch();
  }
}

Status Sources::status(const FetchList& list) {
  for (const Offer* const below : list.below) {
    if (below != nullptr) TIERD_TRY(below->status());
  }
  return {};
}

}  // namespace tierd
