// Keeps a given hot set from the start to the end: of each site the neurons with the highest heat, as many as
// fit, where a step uses only some of them what is left by those that it uses whole. The rest streams by.
//
// The heat of a site is the tensor of its name in `tensors`, one value a neuron. A site without one is cold:
// of it the first neurons stay. Of neurons with the same heat the first is the hotter one; a value that is no
// number is colder than all.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tierd/fixed_set.hpp"

namespace {

class Static : public tierd::FixedSet {
 public:
  explicit Static(const tierd::Host& host) : FixedSet(host), order_(host.n_sites()) {
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
                       [&](uint32_t a, uint32_t b) { return hotter(heat.data[a], heat.data[b]); });
    }
  }

  void share(uint64_t bytes, uint32_t* max_slots) {
    tierd::split_whole_first(host(), bytes, max_slots);
    for (uint32_t s = 0; s < host().n_sites(); ++s) {
      std::vector<uint32_t> hot;
      for (size_t i = 0; i < order_[s].size() && hot.size() < max_slots[s]; ++i) {
        if (host().at_home(s, order_[s][i])) hot.push_back(order_[s][i]);
      }
      std::sort(hot.begin(), hot.end());
      keep(s, std::move(hot));
    }
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    name_surplus(max_slots, victims);
  }

 private:
  static bool hotter(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
    return a > b;
  }

  std::vector<std::vector<uint32_t>> order_;  // [sites] hottest first
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Static>("static", "1.0", "keeps a given hot set; the rest streams"))
