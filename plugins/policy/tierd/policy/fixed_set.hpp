// Base class of a cache that keeps a fixed set of each edition's neurons from the start to the end. The
// neurons of the set stay once they are loaded; all others pass through staging. Optional; C++17,
// header-only.
//
//   class Hot : public tierd::FixedSet {
//    public:
//     explicit Hot(const tierd::Host& host) : FixedSet(host) {}
//     void share(uint64_t bytes, uint32_t* max_slots) {
//       tierd::split_evenly(host(), bytes, max_slots);
//       // At most max_slots[e] neurons of each edition stay.
//       for (uint32_t e = 0; e < host().n_editions(); ++e) keep(e, …);
//     }
//     void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
//       share(bytes, max_slots);
//       name_surplus(max_slots, victims);
//     }
//   };
//   TIERD_PLUGIN(tierd::cache<Hot>("hot", "1.0", "…"))
#ifndef TIERD_POLICY_FIXED_SET_HPP
#define TIERD_POLICY_FIXED_SET_HPP

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/split.hpp"

namespace tierd {

// Implements the functions of a cache except `share` and `resize`, which call keep(). Before the first keep()
// no neuron stays.
class FixedSet {
 public:
  explicit FixedSet(const Host& host) : host_(host), kept_(host.n_editions()), here_(host.n_editions()) {}

  void admit(const tierd_set_view& missing, int /*priority*/, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    // A neuron outside the set, left by another cache or a larger share, is evicted.
    const std::set<uint32_t>& here = here_[missing.edition];
    auto stranger = here.begin();
    victims.n = 0;
    for (uint32_t i = 0; i < missing.n; ++i) {
      verdict[i] = TIERD_VERDICT_BYPASS;
      if (!stays(missing.edition, missing.idx == nullptr ? i : missing.idx[i])) continue;
      if (free_slots > 0) {
        --free_slots;
      } else {
        while (stranger != here.end() &&
               (stays(missing.edition, *stranger) || !host_.evictable(missing.edition, *stranger))) {
          ++stranger;
        }
        if (stranger == here.end() || victims.n == victims.cap) continue;
        victims.item[victims.n++] = {missing.edition, *stranger++};
      }
      verdict[i] = TIERD_VERDICT_KEEP;
    }
  }

  void landed(uint32_t edition, const uint32_t* idx, uint32_t n) { here_[edition].insert(idx, idx + n); }
  void dropped(uint32_t edition, const uint32_t* idx, uint32_t n, int /*why*/) {
    for (uint32_t i = 0; i < n; ++i) here_[edition].erase(idx[i]);
  }

  // Fetches the whole set before the first step.
  void fill() {
    for (uint32_t e = 0; e < kept_.size(); ++e) {
      if (!kept_[e].empty()) host_.want(e, kept_[e].data(), static_cast<uint32_t>(kept_[e].size()));
    }
  }

 protected:
  const Host& host() const { return host_; }

  // Sets the neurons of the edition that stay from now on: ascending.
  void keep(uint32_t edition, std::vector<uint32_t> neurons) { kept_[edition] = std::move(neurons); }

  // For `resize`, after keep(): names the surplus, first neurons that do not belong to the set.
  void name_surplus(const uint32_t* max_slots, tierd_victims_out& victims) const {
    victims.n = 0;
    for (uint32_t e = 0; e < host_.n_editions(); ++e) {
      std::vector<uint32_t> order(here_[e].begin(), here_[e].end());
      std::stable_partition(order.begin(), order.end(), [&](uint32_t neuron) { return !stays(e, neuron); });
      tierd::name_surplus(host_, e, order, max_slots[e], victims);
    }
  }

 private:
  bool stays(uint32_t edition, uint32_t neuron) const {
    return std::binary_search(kept_[edition].begin(), kept_[edition].end(), neuron);
  }

  Host host_;
  std::vector<std::vector<uint32_t>> kept_;  // [editions] the neurons that stay, ascending
  std::vector<std::set<uint32_t>> here_;     // [editions] the resident neurons
};

}  // namespace tierd
#endif
