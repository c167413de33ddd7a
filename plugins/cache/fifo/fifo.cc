// Drops what came first, site by site.
#include <algorithm>
#include <deque>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace {

class Fifo {
 public:
  explicit Fifo(const tierd::Host& host) : host_(host), order_(host.n_sites()) {}

  void share(uint64_t bytes, uint32_t* max_slots) { tierd::split_evenly(host_, bytes, max_slots); }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      tierd::name_surplus(host_, s, order_[s], max_slots[s], victims);
    }
  }

  void admit(const tierd_set_view& missing, int, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    const std::deque<uint32_t>& order = order_[missing.site];
    auto oldest = order.begin();
    victims.n = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = TIERD_VERDICT_KEEP;
      if (free_slots > 0) {
        --free_slots;
        continue;
      }
      while (oldest != order.end() && !host_.evictable(missing.site, *oldest)) ++oldest;
      if (oldest == order.end() || victims.n == victims.cap) {
        verdict[i] = TIERD_VERDICT_BYPASS;
      } else {
        victims.item[victims.n++] = {missing.site, *oldest++};
      }
    }
  }

  void landed(uint32_t site, const uint32_t* idx, uint32_t n) {
    order_[site].insert(order_[site].end(), idx, idx + n);
  }

  void dropped(uint32_t site, const uint32_t* idx, uint32_t n, int) {
    std::deque<uint32_t>& order = order_[site];
    for (uint32_t i = 0; i < n; ++i) {
      // Those that failed to come were never here.
      const auto found = std::find(order.begin(), order.end(), idx[i]);
      if (found != order.end()) order.erase(found);
    }
  }

 private:
  tierd::Host host_;
  std::vector<std::deque<uint32_t>> order_;  // [sites] oldest first
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Fifo>("fifo", "1.0", "drops what came first"))
