#include "core/kernel/supply/stretches.h"

#include <algorithm>
#include <tuple>

namespace tierd {

void sort_by_stretches(uint32_t in_stretch, FetchList& list) {
  std::sort(list.neurons.begin(), list.neurons.end(), [in_stretch](const ToFetch& a, const ToFetch& b) {
    return std::tuple(a.neuron / in_stretch, a.keep, a.neuron) <
           std::tuple(b.neuron / in_stretch, b.keep, b.neuron);
  });
}

bool next_is_ready(uint32_t in_stretch, const FetchList& list) {
  const std::vector<ToFetch>& all = list.neurons;
  const uint32_t stretch = all[list.next].neuron / in_stretch;
  for (size_t i = list.next; i != all.size() && all[i].neuron / in_stretch == stretch; ++i) {
    if (!list.ready(i)) return false;
  }
  return true;
}

bool NextStretches::takes_streams() const {
  return !std::ranges::all_of(taken(), &ToFetch::keep);
}

void take_stretches(std::span<NextStretches> asked, uint32_t in_stretch, size_t most_units) {
  constexpr uint32_t kNone = UINT32_MAX;
  const auto stretch_at = [in_stretch](const NextStretches& of, size_t i) {
    return i == of.list->neurons.size() ? kNone : of.list->neurons[i].neuron / in_stretch;
  };
  const auto behind = [&](const NextStretches& of, uint32_t stretch) {
    size_t i = of.end;
    while (stretch_at(of, i) == stretch) ++i;
    return i;
  };
  for (NextStretches& of : asked) of.end = of.list->next;
  for (size_t units = 0;;) {
    uint32_t stretch = kNone;
    for (const NextStretches& of : asked) stretch = std::min(stretch, stretch_at(of, of.end));
    if (stretch == kNone) return;
    for (const NextStretches& of : asked) {
      const size_t end = behind(of, stretch);
      if (end - of.list->next > of.most) return;
      for (size_t i = of.end; i != end && !of.list->below.empty(); ++i) {
        if (!of.list->ready(i)) return;
      }
      units += end - of.end;
    }
    if (units > most_units) return;
    for (NextStretches& of : asked) of.end = behind(of, stretch);
  }
}

}  // namespace tierd
