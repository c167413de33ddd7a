#include "core/kernel/supply/wishes.h"

#include <algorithm>

namespace tierd {

std::optional<Wishes::Found> Wishes::find(SiteId site, EditionId edition, uint32_t step) {
  for (Wish& wish : wishes_) {
    if (wish.step != step) continue;
    const auto part = std::ranges::find_if(
        wish.parts, [&](const Wish::Part& of) { return of.site == site && of.edition == edition; });
    if (part != wish.parts.end()) return Found{&wish, part};
  }
  return std::nullopt;
}

Plan Wishes::take(SiteId site, EditionId edition, uint32_t step) {
  const std::optional<Found> found = find(site, edition, step);
  if (!found) return {};
  Plan plan = std::move(found->part->plan);
  found->wish->parts.erase(found->part);
  return plan;
}

void Wishes::withdraw(SiteId site, EditionId edition, uint32_t step, const ActiveSet& wanted,
                      std::vector<Planned>& withdrawn) {
  const std::optional<Found> found = find(site, edition, step);
  if (!found) return;
  Plan& plan = found->part->plan;
  const auto waiting = plan.neurons.begin() + static_cast<std::ptrdiff_t>(plan.next);
  const auto gone = std::stable_partition(
      waiting, plan.neurons.end(), [&](const Planned& planned) { return !wanted.contains(planned.neuron); });
  withdrawn.insert(withdrawn.end(), gone, plan.neurons.end());
  plan.neurons.erase(gone, plan.neurons.end());
}

void Wishes::drop_passed(SiteId site, uint32_t step, const Dropped& dropped) {
  for (Wish& wish : wishes_) {
    if (wish.step != step) continue;
    std::erase_if(wish.parts, [&](Wish::Part& part) {
      if (part.site >= site) return false;
      dropped(part.edition, part.plan);
      return true;
    });
  }
}

bool Wishes::claim(EditionId edition, uint32_t neuron) {
  for (Wish& wish : wishes_) {
    for (auto& [site, of, plan] : wish.parts) {
      if (of != edition) continue;
      for (size_t i = plan.next; i < plan.neurons.size(); ++i) {
        if (plan.neurons[i].neuron != neuron || !plan.neurons[i].keep) continue;
        plan.neurons.erase(plan.neurons.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    }
  }
  return false;
}

void Wishes::drop_until(uint32_t step, const Dropped& dropped) {
  std::erase_if(wishes_, [&](Wish& wish) {
    if (wish.step > step) return false;
    for (Wish::Part& part : wish.parts) dropped(part.edition, part.plan);
    return true;
  });
}

}  // namespace tierd
