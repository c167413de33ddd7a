// Deals the neurons of every site out to the computing units in turn, whatever they are: what a balancer that
// looks at loads must beat.
#include "tierd/plugin.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer("run", "1", 1, 1 << 20,
                   "neurons in a row that one unit gets; longer runs are read from flash in one piece"),
};

class RoundRobin {
 public:
  explicit RoundRobin(const tierd::Host& host) : run_(static_cast<uint32_t>(host.integer("run"))) {}

  void assign(const tierd_set_view& set, uint32_t n_units, uint8_t* unit) {
    for (uint32_t i = 0; i < set.n; ++i) {
      const uint32_t neuron = set.idx == nullptr ? i : set.idx[i];
      unit[i] = static_cast<uint8_t>(neuron / run_ % n_units);
    }
  }

 private:
  uint32_t run_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(tierd::balancer<RoundRobin>("round-robin", "1.0",
                                                            "the units take turns, neuron by neuron"),
                                kParams))
