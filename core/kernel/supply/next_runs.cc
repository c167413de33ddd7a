#include "core/kernel/supply/next_runs.h"

#include <algorithm>
#include <cstdint>

#include "core/kernel/supply/gathering.h"

namespace tierd {

bool NextRuns::takes_streams() const {
  return !std::ranges::all_of(taken(), &Planned::keep);
}

void take_runs(std::span<NextRuns> asked, uint32_t in_run, size_t most_units) {
  constexpr uint32_t kNone = UINT32_MAX;
  const auto run_at = [in_run](const NextRuns& of, size_t i) {
    return i == of.plan->neurons.size() ? kNone : of.plan->neurons[i].neuron / in_run;
  };
  const auto behind = [&](const NextRuns& of, uint32_t run) {
    size_t i = of.end;
    while (run_at(of, i) == run) ++i;
    return i;
  };
  for (NextRuns& of : asked) of.end = of.plan->next;
  for (size_t units = 0;;) {
    uint32_t run = kNone;
    for (const NextRuns& of : asked) run = std::min(run, run_at(of, of.end));
    if (run == kNone) return;
    for (const NextRuns& of : asked) {
      const size_t end = behind(of, run);
      if (end - of.plan->next > of.most) return;
      for (size_t i = of.end; i != end && !of.plan->below.empty(); ++i) {
        if (!is_ready(*of.plan, i)) return;
      }
      units += end - of.end;
    }
    if (units > most_units) return;
    for (NextRuns& of : asked) of.end = behind(of, run);
  }
}

}  // namespace tierd
