// What a cache needs that keeps a fixed set of each site's neurons from the start to the end: those come to
// stay, all others stream by. Optional; C++17, header-only.
//
//   class Hot : public tierd::FixedSet {
//    public:
//     explicit Hot(const tierd::Host& host) : FixedSet(host) {}
//     void share(uint64_t bytes, uint32_t* max_slots) {
//       tierd::split_evenly(host(), bytes, max_slots);
//       for (uint32_t s = 0; s < host().n_sites(); ++s) keep(s, …);  // at most max_slots[s] of its neurons
//     }
//     void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
//       share(bytes, max_slots);
//       name_surplus(max_slots, victims);
//     }
//   };
//   TIERD_PLUGIN(tierd::cache<Hot>("hot", "1.0", "…"))
#ifndef TIERD_FIXED_SET_HPP
#define TIERD_FIXED_SET_HPP

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace tierd {

// The functions of a cache but for `share` and `resize`, which decide what stays. Nothing stays before.
class FixedSet {
 public:
  explicit FixedSet(const Host& host) : host_(host), kept_(host.n_sites()), here_(host.n_sites()) {}

  void admit(const tierd_set_view& missing, int /*priority*/, uint32_t free_slots, uint8_t* verdict,
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

  void landed(uint32_t site, const uint32_t* idx, uint32_t n) { here_[site].insert(idx, idx + n); }
  void dropped(uint32_t site, const uint32_t* idx, uint32_t n, int /*why*/) {
    for (uint32_t i = 0; i < n; ++i) here_[site].erase(idx[i]);
  }

  // All that stays is wanted before the first step.
  void ahead(uint32_t site, tierd_ahead_out& out) {
    out.n = 0;
    if (site != TIERD_NO_SITE) return;
    for (uint32_t s = 0; s < kept_.size() && out.n < out.cap; ++s) {
      if (kept_[s].empty()) continue;
      out.item[out.n++] = {s, 0, static_cast<uint32_t>(kept_[s].size()), kept_[s].data()};
    }
  }

 protected:
  const Host& host() const { return host_; }

  // From now on these neurons of the site stay: ascending.
  void keep(uint32_t site, std::vector<uint32_t> neurons) { kept_[site] = std::move(neurons); }

  // For `resize`, once it is known what stays: names what has to leave, first what does not stay.
  void name_surplus(const uint32_t* max_slots, tierd_victims_out& victims) const {
    victims.n = 0;
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      std::vector<uint32_t> order(here_[s].begin(), here_[s].end());
      std::stable_partition(order.begin(), order.end(), [&](uint32_t neuron) { return !stays(s, neuron); });
      tierd::name_surplus(host_, s, order, max_slots[s], victims);
    }
  }

 private:
  bool stays(uint32_t site, uint32_t neuron) const {
    return std::binary_search(kept_[site].begin(), kept_[site].end(), neuron);
  }

  Host host_;
  std::vector<std::vector<uint32_t>> kept_;  // [sites] those that stay, ascending
  std::vector<std::set<uint32_t>> here_;     // [sites] those that are here
};

}  // namespace tierd
#endif
