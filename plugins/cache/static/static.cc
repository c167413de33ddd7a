// Keeps a given hot set from the start to the end. Each edition keeps the neurons with the highest heat, as
// many as fit; sites that a step uses whole are served before the others. The rest passes through.
//
// The heat of an edition is the tensor of its site's name in `tensors`, one value a neuron. An edition
// without one is cold: its first neurons stay. Among neurons with the same heat the first is the hotter one;
// NaN is colder than all.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tierd/policy/fixed_set.hpp"

namespace {

class Static : public tierd::FixedSet {
 public:
  explicit Static(const tierd::Host& host) : FixedSet(host), order_(host.n_editions()) {
    for (uint32_t e = 0; e < host.n_editions(); ++e) {
      const tierd_site_view& site = host.site_of(e);
      order_[e].resize(site.n);
      std::iota(order_[e].begin(), order_[e].end(), 0u);
      if (!host.has_tensor(site.name)) continue;
      const tierd_tensor_view heat = host.tensor(site.name);
      if (heat.n_dims != 1 || heat.dims[0] != site.n) {
        throw tierd::Failure(TIERD_E_INVALID, "the heat of " + std::string(site.name) + " should be " +
                                                  std::to_string(site.n) + " values");
      }
      std::stable_sort(order_[e].begin(), order_[e].end(),
                       [&](uint32_t a, uint32_t b) { return hotter(heat.data[a], heat.data[b]); });
    }
  }

  void share(uint64_t bytes, uint32_t* max_slots) {
    tierd::split_whole_first(host(), bytes, max_slots);
    for (uint32_t e = 0; e < host().n_editions(); ++e) {
      std::vector<uint32_t> hot;
      for (size_t i = 0; i < order_[e].size() && hot.size() < max_slots[e]; ++i) {
        if (host().at_home(e, order_[e][i])) hot.push_back(order_[e][i]);
      }
      std::sort(hot.begin(), hot.end());
      keep(e, std::move(hot));
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

  std::vector<std::vector<uint32_t>> order_;  // [editions] hottest first
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Static>("static", "1.0", "keeps a given hot set and streams the rest"))
