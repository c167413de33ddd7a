// Drops what was used longest ago, site by site. For a dense model, which uses everything in the same order
// every step, that is the worst choice there is, and worth showing.
#include <list>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace {

class Lru {
 public:
  explicit Lru(const tierd::Host& host) : host_(host), sites_(host.n_sites()) {
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      sites_[s].place.resize(host.site(s).n);
      sites_[s].here.resize(host.site(s).n);
    }
  }

  void share(uint64_t bytes, uint32_t* max_slots) { tierd::split_evenly(host_, bytes, max_slots); }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      tierd::name_surplus(host_, s, sites_[s].order, max_slots[s], victims);
    }
  }

  void admit(const tierd_set_view& missing, int, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    const Site& site = sites_[missing.site];
    auto candidate = site.order.begin();
    victims.n = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = TIERD_VERDICT_KEEP;
      if (free_slots > 0) {
        --free_slots;
        continue;
      }
      while (candidate != site.order.end() && !host_.evictable(missing.site, *candidate)) ++candidate;
      if (candidate == site.order.end() || victims.n == victims.cap) {
        verdict[i] = TIERD_VERDICT_BYPASS;
        continue;
      }
      victims.item[victims.n++] = {missing.site, *candidate++};
    }
  }

  void landed(uint32_t s, const uint32_t* idx, uint32_t n) {
    Site& site = sites_[s];
    for (uint32_t i = 0; i < n; ++i) {
      if (site.here[idx[i]]) continue;
      site.here[idx[i]] = true;
      site.place[idx[i]] = site.order.insert(site.order.end(), idx[i]);
    }
  }

  void dropped(uint32_t s, const uint32_t* idx, uint32_t n, int) {
    Site& site = sites_[s];
    for (uint32_t i = 0; i < n; ++i) {
      if (!site.here[idx[i]]) continue;
      site.here[idx[i]] = false;
      site.order.erase(site.place[idx[i]]);
    }
  }

  void touch(const tierd_set_view& used) {
    Site& site = sites_[used.site];
    for (uint32_t i = 0; i < used.n; ++i) {
      const uint32_t neuron = used.idx == nullptr ? i : used.idx[i];
      if (site.here[neuron]) site.order.splice(site.order.end(), site.order, site.place[neuron]);
    }
  }

 private:
  struct Site {
    std::list<uint32_t> order;  // of the neurons here, least recently used first
    std::vector<std::list<uint32_t>::iterator> place;
    std::vector<bool> here;
  };
  tierd::Host host_;
  std::vector<Site> sites_;
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Lru>("lru", "1.0", "drops what was used longest ago"))
