// One computing unit does everything.
#include <algorithm>

#include "tierd/plugin.hpp"

namespace {

class Single {
 public:
  explicit Single(const tierd::Host& host) : host_(host) {}
  void place(uint32_t edition, uint8_t* home) { std::fill_n(home, host_.edition(edition).n, uint8_t{0}); }
  void assign(const tierd_set_view& set, uint8_t* unit) { std::fill_n(unit, set.n, uint8_t{0}); }

 private:
  tierd::Host host_;
};

}  // namespace

TIERD_PLUGIN(tierd::balancer<Single>("single", "1.0", "one unit computes all neurons"))
