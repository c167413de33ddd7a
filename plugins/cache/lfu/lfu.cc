// Drops what was used least often since the start, site by site; among equals the lowest number. What is
// missing comes in even if it was used less often than everything here: it is being used now.
#include <algorithm>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace {

class Lfu {
 public:
  explicit Lfu(const tierd::Host& host) : host_(host), sites_(host.n_sites()) {
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      sites_[s].uses.resize(host.site(s).n);
      sites_[s].here.resize(host.site(s).n);
    }
  }

  void share(uint64_t bytes, uint32_t* max_slots) { tierd::split_evenly(host_, bytes, max_slots); }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      tierd::name_surplus(host_, s, by_use(s), max_slots[s], victims);
    }
  }

  void admit(const tierd_set_view& missing, int, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    const uint32_t wanted = missing.n > free_slots ? std::min(missing.n - free_slots, victims.cap) : 0;
    victims.n = 0;
    if (wanted != 0) {
      for (const uint32_t neuron : by_use(missing.site)) {
        if (victims.n == wanted) break;
        if (host_.evictable(missing.site, neuron)) victims.item[victims.n++] = {missing.site, neuron};
      }
    }
    const uint32_t kept = std::min(missing.n, free_slots + victims.n);
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = i < kept ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
    }
  }

  void landed(uint32_t s, const uint32_t* idx, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) sites_[s].here[idx[i]] = true;
  }
  void dropped(uint32_t s, const uint32_t* idx, uint32_t n, int) {
    for (uint32_t i = 0; i < n; ++i) sites_[s].here[idx[i]] = false;
  }
  void touch(const tierd_set_view& used) {
    for (uint32_t i = 0; i < used.n; ++i) ++sites_[used.site].uses[used.idx == nullptr ? i : used.idx[i]];
  }

 private:
  struct Site {
    std::vector<uint64_t> uses;  // [n] steps since the start
    std::vector<bool> here;
  };
  // What is here, rarest first.
  std::vector<uint32_t> by_use(uint32_t s) const {
    const Site& site = sites_[s];
    std::vector<uint32_t> order;
    for (uint32_t neuron = 0; neuron < site.here.size(); ++neuron) {
      if (site.here[neuron]) order.push_back(neuron);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return site.uses[a] < site.uses[b]; });
    return order;
  }

  tierd::Host host_;
  std::vector<Site> sites_;
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Lfu>("lfu", "1.0", "drops what was used least often"))
