// For strategies that rely on which neurons fire. Optional; C++17, header-only.
#ifndef TIERD_POLICY_SILENCE_HPP
#define TIERD_POLICY_SILENCE_HPP

#include <cstdint>

#include "tierd/plugin.hpp"

namespace tierd {

// Throws if the model has neurons whose firing can be observed but every neuron contributes to every row:
// then all neurons fire, whatever the text.
inline void need_silent_neurons(const Host& host) {
  bool tells = false;
  for (uint32_t s = 0; s < host.n_sites(); ++s) {
    const tierd_site_view& site = host.site(s);
    if (site.axis != TIERD_AXIS_NEURON && site.axis != TIERD_AXIS_CHANNEL) continue;
    if (!host.never_silent(s)) return;
    tells = true;
  }
  if (!tells) return;
  throw Failure(TIERD_E_UNSUPPORTED,
                "no neuron of MODEL is ever silent, since its networks have no ReLU, so that all fire and "
                "none is hotter than another: run a model with ReLU, or decide without it: --set "
                "predictor.name=dense --set heat.name=");
}

}  // namespace tierd
#endif
