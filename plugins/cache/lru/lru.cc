// Evicts the least recently used neuron, edition by edition. For a dense model, which uses everything in the
// same order every step, this is the worst choice, and shown for comparison.
#include "tierd/plugin.hpp"
#include "tierd/policy/eviction_order.hpp"

namespace {

class Lru : public tierd::EvictionOrder {
 public:
  using EvictionOrder::EvictionOrder;

  void touch(const tierd_set_view& used) {
    tierd::Order& least_recent = order(used.edition);
    for (uint32_t i = 0; i < used.n; ++i) least_recent.move_to_end(used.idx == nullptr ? i : used.idx[i]);
  }
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Lru>("lru", "1.0", "evicts the neurons that were used least recently"))
