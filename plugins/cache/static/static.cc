// Keeps a given hot set from the start to the end: of each site the neurons with the highest heat, as many as
// fit. The rest streams by.
//
// The heat of a site is the tensor of its name in `tensors`, one value a neuron. A site without one is cold:
// of it the first neurons stay.
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace {

class Static {
 public:
  explicit Static(const tierd::Host& host)
      : host_(host), order_(host.n_sites()), hot_(host.n_sites()), here_(host.n_sites()) {
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& site = host.site(s);
      if (site.alias_of != TIERD_NO_SITE) continue;
      order_[s].resize(site.n);
      std::iota(order_[s].begin(), order_[s].end(), 0u);
      if (!host.has_tensor(site.name)) continue;
      const tierd_tensor_view heat = host.tensor(site.name);
      if (heat.n_dims != 1 || heat.dims[0] != site.n) {
        throw tierd::Failure(TIERD_E_INVALID, "the heat of " + std::string(site.name) + " should be " +
                                                  std::to_string(site.n) + " values");
      }
      std::stable_sort(order_[s].begin(), order_[s].end(),
                       [&](uint32_t a, uint32_t b) { return heat.data[a] > heat.data[b]; });
    }
  }

  void share(uint64_t bytes, uint32_t* max_slots) {
    tierd::split_evenly(host_, bytes, max_slots);
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      hot_[s].assign(order_[s].begin(), order_[s].begin() + max_slots[s]);
      std::sort(hot_[s].begin(), hot_[s].end());
    }
  }

  void admit(const tierd_set_view& missing, int, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    // What another cache, or a larger share, has left here gives way.
    const std::set<uint32_t>& here = here_[missing.site];
    auto stranger = here.begin();
    victims.n = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = TIERD_VERDICT_BYPASS;
      if (!stays(missing.site, missing.idx == nullptr ? i : missing.idx[i])) continue;
      if (free_slots > 0) {
        --free_slots;
      } else {
        while (stranger != here.end() &&
               (stays(missing.site, *stranger) || !host_.evictable(missing.site, *stranger))) {
          ++stranger;
        }
        if (stranger == here.end() || victims.n == victims.cap) continue;
        victims.item[victims.n++] = {missing.site, *stranger++};
      }
      verdict[i] = TIERD_VERDICT_KEEP;
    }
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    victims.n = 0;
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      std::vector<uint32_t> order;
      for (const bool staying : {false, true}) {
        for (const uint32_t neuron : here_[s]) {
          if (stays(s, neuron) == staying) order.push_back(neuron);
        }
      }
      tierd::name_surplus(host_, s, order, max_slots[s], victims);
    }
  }

  void landed(uint32_t site, const uint32_t* idx, uint32_t n) { here_[site].insert(idx, idx + n); }
  void dropped(uint32_t site, const uint32_t* idx, uint32_t n, int) {
    for (uint32_t i = 0; i < n; ++i) here_[site].erase(idx[i]);
  }

  void ahead(uint32_t site, tierd_ahead_out& out) {
    out.n = 0;
    if (site != TIERD_NO_SITE) return;
    for (uint32_t s = 0; s < hot_.size() && out.n < out.cap; ++s) {
      if (!hot_[s].empty()) out.item[out.n++] = {s, 0, static_cast<uint32_t>(hot_[s].size()), hot_[s].data()};
    }
  }

 private:
  bool stays(uint32_t site, uint32_t neuron) const {
    return std::binary_search(hot_[site].begin(), hot_[site].end(), neuron);
  }

  tierd::Host host_;
  std::vector<std::vector<uint32_t>> order_;  // [sites] hottest first
  std::vector<std::vector<uint32_t>> hot_;    // [sites] those that stay, ascending
  std::vector<std::set<uint32_t>> here_;      // [sites]
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Static>("static", "1.0", "keeps a given hot set; the rest streams"))
