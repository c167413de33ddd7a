// Deals the neurons of every site out to the computing units in turn: the baseline for balancers that look at
// loads.
#include "tierd/plugin.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer(
        "run", "1", 1, 1 << 20,
        "number of consecutive neurons that one unit gets; more of them are read from flash in one piece"),
};

class RoundRobin {
 public:
  explicit RoundRobin(const tierd::Host& host)
      : host_(host), run_(static_cast<uint32_t>(host.integer("run"))) {}

  void place(uint32_t edition, uint8_t* home) {
    for (uint32_t i = 0; i < host_.edition(edition).n; ++i) home[i] = turn_of(i);
  }
  void assign(const tierd_set_view& set, uint8_t* unit) {
    for (uint32_t i = 0; i < set.n; ++i) unit[i] = turn_of(set.idx == nullptr ? i : set.idx[i]);
  }

 private:
  uint8_t turn_of(uint32_t neuron) const { return static_cast<uint8_t>(neuron / run_ % host_.n_units()); }

  tierd::Host host_;
  uint32_t run_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(tierd::balancer<RoundRobin>("round-robin", "1.0",
                                                            "the units take turns, neuron by neuron"),
                                kParams))
