// What fits stays from the start to the end; the rest streams by. The split is by bytes: every site keeps the
// same share of its neurons, so that there is always something to compute while the next bytes come in.
//
// A site whose set is given (an embedding: one row a token) uses few of its neurons in a step; it gets what
// the others leave.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/split.hpp"

namespace {

class Pinned {
 public:
  explicit Pinned(const tierd::Host& host) : host_(host), here_(host.n_sites()) {}

  void share(uint64_t bytes, uint32_t* max_slots) {
    const std::vector<uint32_t> most(max_slots, max_slots + host_.n_sites());
    std::fill_n(max_slots, host_.n_sites(), 0u);
    bytes = tierd::split_evenly(host_, bytes, most, max_slots, [](const tierd_site_view& s) {
      return s.alias_of == TIERD_NO_SITE && s.given == 0;
    });
    tierd::split_evenly(host_, bytes, most, max_slots,
                        [](const tierd_site_view& s) { return s.alias_of == TIERD_NO_SITE && s.given != 0; });
    slots_.assign(max_slots, max_slots + host_.n_sites());
    numbers_.resize(slots_.empty() ? 0 : *std::max_element(slots_.begin(), slots_.end()));
    std::iota(numbers_.begin(), numbers_.end(), 0u);
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
    for (uint32_t s = 0; s < slots_.size() && out.n < out.cap; ++s) {
      if (slots_[s] != 0) out.item[out.n++] = {s, 0, slots_[s], numbers_.data()};
    }
  }

 private:
  bool stays(uint32_t site, uint32_t neuron) const { return neuron < slots_[site]; }

  tierd::Host host_;
  std::vector<uint32_t> slots_;           // [sites]
  std::vector<uint32_t> numbers_;         // 0, 1, 2, …: the neurons that stay are the first ones
  std::vector<std::set<uint32_t>> here_;  // [sites]
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Pinned>("pinned", "1.0",
                                  "what fits stays, an equal share of each site; the rest streams"))
