// The operators of a model under a cache-aware mask: the channels of each in a pass of one row, and those
// that are read ahead for the next one while this one is computed.
//
// If channels are stored in the order of their rates (tier-convert --order), the first missing ones are the
// most used ones, and a pass reads most of them. So many are read ahead that the disk is busy until the next
// operator's inputs are known. Channels that were read ahead are resident, and used.
#ifndef TIERD_TOP_K_CACHE_AWARE_SITES_HPP
#define TIERD_TOP_K_CACHE_AWARE_SITES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/cache_aware.hpp"

namespace tierd {

class CacheAwareSites {
 public:
  // `ahead`: channels to read ahead for the next pass, as a share of those that the operator read in its last
  // pass.
  CacheAwareSites(const Host& host, double ahead) : host_(host), ahead_(ahead), sites_(host.n_sites()) {
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& site = host.site(s);
      if (site.axis != TIERD_AXIS_CHANNEL) continue;
      sites_[s].n = site.n;
      sites_[s].edition = site.editions[0];
      sites_[s].bytes = stride_of(host, site);
    }
  }

  // Chooses the channels of one row. `x` [n]: the inputs; bound(magnitudes [n]): returns the greatest
  // magnitude that is left out if the largest inputs are used.
  template <class Bound>
  void predict(uint32_t s, const float* x, Bound bound, tierd_set_out& out) {
    Site& site = sites_[s];
    const uint32_t n = site.n;
    magnitudes_.resize(n), resident_.resize(n), used_.resize(n);
    std::transform(x, x + n, magnitudes_.begin(), [](float value) { return std::abs(value); });
    const float least = bound(magnitudes_.data());
    double energy = 0, most = 0;
    for (const float magnitude : magnitudes_) {
      const double square = double{magnitude} * magnitude;
      energy += square;
      most += magnitude > least ? 0 : square;
    }
    host_.resident(site.edition, resident_.data());
    uint32_t missing = 0;
    for (const uint8_t here : resident_) missing += here == 0 ? 1 : 0;
    for (const uint32_t channel : site.ahead) resident_[channel] = 1;
    const double lost = mask_.choose(magnitudes_.data(), n,
                                     static_cast<double>(gap_bytes()) / static_cast<double>(site.bytes),
                                     resident_.data(), most, site.price, used_.data());
    site.ahead.clear();
    answer(n, out);
    const uint32_t resident = n - missing;
    site.fetched = out.n > resident ? out.n - resident : 0;
    count(out.n, n, energy, most, lost);
  }

  // Wishes for the first missing channels of the next operator that is known to be passed.
  void look_ahead(uint32_t s) {
    if (ahead_ == 0) return;
    uint32_t distance = 1;
    const uint32_t sites = host_.n_sites();
    const auto is_next = [&](uint32_t later) {
      return sites_[later].n != 0 && host_.surely_passes(s, later);
    };
    while (distance < sites && !is_next((s + distance) % sites)) ++distance;
    const uint32_t next = (s + distance) % sites;
    Site& site = sites_[next];
    const auto most = static_cast<size_t>(ahead_ * site.fetched);
    site.ahead.clear();
    if (most == 0) return;
    resident_.resize(site.n);
    host_.resident(site.edition, resident_.data());
    for (uint32_t i = 0; i < site.n && site.ahead.size() < most; ++i) {
      if (resident_[i] == 0) site.ahead.push_back(i);
    }
    host_.wish(next, distance, site.ahead.data(), static_cast<uint32_t>(site.ahead.size()));
  }

  // Adds the resident channels to `out`, the largest inputs of each of several rows. Channels that one row
  // needs are in memory for the others, so each row uses all of them.
  void share(uint32_t s, const tierd_rows_view& rows, tierd_set_out& out) {
    Site& site = sites_[s];
    site.ahead.clear();
    magnitudes_.assign(site.n, 0), resident_.resize(site.n), used_.assign(site.n, 0);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const float* const x = rows.x + uint64_t{row} * rows.dim;
      for (uint32_t i = 0; i < site.n; ++i) magnitudes_[i] = std::max(magnitudes_[i], std::abs(x[i]));
    }
    for (uint32_t i = 0; i < out.n; ++i) used_[out.idx[i]] = 1;
    host_.resident(site.edition, resident_.data());
    for (uint32_t i = 0; i < site.n; ++i) used_[i] |= resident_[i] != 0 && magnitudes_[i] > 0 ? 1 : 0;
    answer(site.n, out);
    const uint64_t words = (rows.rows + 63) / 64;
    if (out.row_mask != nullptr) std::fill_n(out.row_mask, out.n * words, ~uint64_t{0});
  }

 private:
  struct Site {
    uint32_t n = 0;  // 0: it is not cut into channels
    uint32_t edition = 0;
    uint64_t bytes = 0;                // stride of channels in the store
    double price = 0;                  // see CacheAware
    uint32_t fetched = 0;              // channels read by its last pass
    std::vector<uint32_t> ahead = {};  // channels requested and not used yet
  };
  // The mean over all calls; each operator has the same weight.
  struct Mean {
    double sum = 0;
    uint64_t n = 0;
    void add(double value) { sum += value, ++n; }
    double value() const { return sum / static_cast<double>(n); }
  };

  // Writes the channels of `used_` to `out`.
  void answer(uint32_t n, tierd_set_out& out) const {
    out.all = 0;
    out.n = 0;
    for (uint32_t i = 0; i < n; ++i) {
      out.idx[out.n] = i;  // overwritten by the next one if it is not used
      out.n += used_[i];
    }
    if (out.score == nullptr) return;
    for (uint32_t i = 0; i < out.n; ++i) out.score[i] = magnitudes_[out.idx[i]];
    out.scored = 1;
  }

  // Returns the stride of channels. Channel i of all layers in a group is contiguous on flash. Channels of
  // experts are not grouped.
  static uint64_t stride_of(const Host& host, const tierd_site_view& site) {
    const uint64_t bytes = host.edition(site.editions[0]).bytes;
    if (host.expert(site.site) != TIERD_NO_EXPERT) return bytes;
    std::set<uint16_t> layers;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      if (host.site(s).layer_group == site.layer_group && host.expert(s) == TIERD_NO_EXPERT)
        layers.insert(host.site(s).layer);
    }
    return bytes * layers.size();
  }

  uint64_t gap_bytes() const {
    uint64_t bytes = 0;
    for (uint32_t m = 1; m <= host_.n_memories(); ++m) bytes = std::max(bytes, host_.gap_bytes(m));
    return bytes;
  }

  void count(uint32_t used, uint32_t n, double energy, double most, double lost) {
    if (!(energy > 0)) return;
    used_share_.add(static_cast<double>(used) / n);
    lost_.add(lost / energy);
    lost_of_largest_.add(most / energy);
    host_.metric("active_share", used_share_.value());
    host_.metric("energy_lost", lost_.value());
    host_.metric("energy_lost_by_largest", lost_of_largest_.value());
  }

  Host host_;
  double ahead_;
  std::vector<Site> sites_;
  CacheAware mask_;
  Mean used_share_, lost_, lost_of_largest_;
  // These are filled anew in each call; they are members so that their memory is reused.
  std::vector<float> magnitudes_;
  std::vector<uint8_t> resident_, used_;
};

}  // namespace tierd
#endif
