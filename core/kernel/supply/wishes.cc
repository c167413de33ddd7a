#include "core/kernel/supply/wishes.h"

#include <algorithm>

namespace tierd {

std::optional<Wishes::Found> Wishes::find(SiteId site, EditionId edition, uint32_t step) {
  for (Wish& wish : wishes_) {
    if (wish.step != step) continue;
    const auto part = std::ranges::find_if(
        wish.parts, [&](const FetchList& of) { return of.purpose.site == site && of.edition == edition; });
    if (part != wish.parts.end()) return Found{&wish, part};
  }
  return std::nullopt;
}

FetchList Wishes::take(SiteId site, EditionId edition, uint32_t step) {
  const std::optional<Found> found = find(site, edition, step);
  if (!found) return {};
  FetchList list = std::move(*found->part);
  found->wish->parts.erase(found->part);
  return list;
}

void Wishes::withdraw(SiteId site, EditionId edition, uint32_t step, const ActiveSet& wanted,
                      std::vector<ToFetch>& withdrawn) {
  const std::optional<Found> found = find(site, edition, step);
  if (!found) return;
  FetchList& list = *found->part;
  const auto waiting = list.neurons.begin() + static_cast<std::ptrdiff_t>(list.next);
  const auto gone = std::stable_partition(waiting, list.neurons.end(),
                                          [&](const ToFetch& of) { return !wanted.contains(of.neuron); });
  withdrawn.insert(withdrawn.end(), gone, list.neurons.end());
  list.neurons.erase(gone, list.neurons.end());
}

void Wishes::drop_passed(SiteId site, uint32_t step, const Dropped& dropped) {
  for (Wish& wish : wishes_) {
    if (wish.step != step) continue;
    std::erase_if(wish.parts, [&](FetchList& part) {
      if (part.purpose.site >= site) return false;
      dropped(part);
      return true;
    });
  }
}

bool Wishes::claim(EditionId edition, uint32_t neuron) {
  for (Wish& wish : wishes_) {
    for (FetchList& list : wish.parts) {
      if (list.edition != edition) continue;
      for (size_t i = list.next; i < list.neurons.size(); ++i) {
        if (list.neurons[i].neuron != neuron || !list.neurons[i].keep) continue;
        list.neurons.erase(list.neurons.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    }
  }
  return false;
}

void Wishes::drop_until(uint32_t step, const Dropped& dropped) {
  std::erase_if(wishes_, [&](Wish& wish) {
    if (wish.step > step) return false;
    for (FetchList& part : wish.parts) dropped(part);
    return true;
  });
}

}  // namespace tierd
