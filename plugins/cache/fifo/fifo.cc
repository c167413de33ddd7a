// Evicts the neuron that was loaded first, edition by edition.
#include "tierd/plugin.hpp"
#include "tierd/policy/eviction_order.hpp"

TIERD_PLUGIN(tierd::cache<tierd::EvictionOrder>("fifo", "1.0", "evicts the neurons that were loaded first"))
