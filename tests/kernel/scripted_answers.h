// Answers for scripted strategies: predictors and caches that follow a list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "tests/kernel/scripted_strategies.h"

namespace tierd {

// Answers a prediction with these neurons. Returns 0, the code of success.
inline int answer_neurons(const Neurons& neurons, tierd_set_out* out) {
  out->n = static_cast<uint32_t>(neurons.size());
  std::copy(neurons.begin(), neurons.end(), out->idx);
  return 0;
}

// The listed neurons are active, and all neurons of sites that are not listed.
inline auto predicts(std::map<SiteId, Neurons> active) {
  return [active = std::move(active)](SiteId site, tierd_set_out* out) {
    const auto found = active.find(site);
    out->all = found == active.end() ? 1 : 0;
    if (found == active.end()) return 0;
    return answer_neurons(found->second, out);
  };
}

// Verdicts by neuron; a neuron that is not listed bypasses.
inline auto verdicts(std::map<uint32_t, uint8_t> of) {
  return [of = std::move(of)](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                              tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i) {
      const auto found = of.find(missing->idx[i]);
      verdict[i] = found == of.end() ? uint8_t{TIERD_VERDICT_BYPASS} : found->second;
    }
    return 0;
  };
}

}  // namespace tierd
