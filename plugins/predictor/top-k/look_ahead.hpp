// Predicts the channels of the next layers from those of this one (ActiveFlow, 3): the residual stream
// changes little from layer to layer, and so do the positions of an operator's large inputs. From one layer
// of each group, the present channels are requested in the same operator of every layer of the next group;
// one read fetches them all.
//
// Its precision differs by operator. The tensor, measured on a text (tier-profile --thresholds),
//
//   SITE.ahead  [9 for each distance]: of the channels that SITE uses at sparsity 0.1, 0.2, ... 0.9, the
//   share
//               that the same operator uses so many layers later, from 1 on
//
// selects the operators for which it is worth it.
#ifndef TIERD_TOP_K_LOOK_AHEAD_HPP
#define TIERD_TOP_K_LOOK_AHEAD_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plugins/predictor/top-k/rank.hpp"
#include "tierd/plugin.hpp"

namespace tierd {

constexpr tierd_param kLookAheadParams[] = {
    text("ahead", "measured", "measured|all|none",
         "operators whose channels are prefetched for the next layers: measured, those with enough precision "
         "by SITE.ahead of the tables, or without tables those whose input is the residual stream, qkv and "
         "up; all; none"),
    text("ahead_from", "first", "first|last",
         "layer of a group from which the next group is predicted: the first leaves more time, the last is "
         "more precise"),
    number("least_precision", "0.7", 0, 1,
           "with tables: minimum share of the prefetched channels that are used"),
    number("over_fetch", "0", -1, 4,
           "number of channels to prefetch beyond the number that this layer uses, as a share of that "
           "number; below 0: fewer, the most probable ones"),
};

class LookAhead {
 public:
  // `sparsity`: [sites] the share of its channels that is left out.
  LookAhead(const Host& host, std::vector<double> sparsity)
      : host_(host),
        sparsity_(std::move(sparsity)),
        over_fetch_(host.number("over_fetch")),
        wished_(host.n_sites()) {
    const std::string mode = host.text("ahead");
    if (mode == "none") return;
    const bool from_last = std::string(host.text("ahead_from")) == "last";
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& site = host.site(s);
      if (site.axis != TIERD_AXIS_CHANNEL || site.layer == TIERD_NO_LAYER) continue;
      if (host.expert(s) != TIERD_NO_EXPERT) continue;  // the next layers choose other experts
      if (looks_ahead(host, site, from_last)) choose(host, s, mode == "all");
    }
  }

  // Wishes for the channels predicted from a few rows. A prompt's rows together use nearly everything, so
  // nothing is predicted from them.
  void wish(uint32_t site, uint32_t n, const tierd_rows_view& rows) {
    if (wished_[site].empty() || rows.x == nullptr || rows.rows > kMostRows) return;
    wanted_.assign(n, 0);
    scores_.assign(n, 0);
    const double share = std::min(1.0, (1 - sparsity_[site]) * (1 + over_fetch_));
    const auto left_out = static_cast<uint32_t>((1 - share) * n);
    if (left_out == n) return;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      magnitudes_.assign(rows.x + uint64_t{row} * rows.dim, rows.x + uint64_t{row} * rows.dim + n);
      for (float& value : magnitudes_) value = value < 0 ? -value : value;
      const float least = left_out == 0 ? 0 : rank_.of(magnitudes_.data(), n, left_out);
      for (uint32_t i = 0; i < n; ++i) {
        wanted_[i] |= magnitudes_[i] >= least && magnitudes_[i] > 0 ? 1 : 0;
        scores_[i] = std::max(scores_[i], magnitudes_[i]);
      }
    }
    channels_.clear();
    for (uint32_t i = 0; i < n; ++i) {
      if (wanted_[i] == 0) continue;
      scores_[channels_.size()] = scores_[i];
      channels_.push_back(i);
    }
    for (const uint32_t later : wished_[site])
      host_.wish(later, later - site, channels_.data(), static_cast<uint32_t>(channels_.size()),
                 scores_.data());
  }

 private:
  static constexpr uint32_t kMostRows = 8;
  static constexpr uint64_t kLevels = 9;

  static bool same_operator(const tierd_site_view& a, const tierd_site_view& b) {
    return a.axis == b.axis && a.op_group == b.op_group && a.n == b.n && b.layer != TIERD_NO_LAYER;
  }

  // Returns whether the site is in the first, or the last, layer of its group.
  static bool looks_ahead(const Host& host, const tierd_site_view& site, bool from_last) {
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& other = host.site(s);
      if (!same_operator(site, other) || other.layer_group != site.layer_group) continue;
      if (from_last ? other.layer > site.layer : other.layer < site.layer) return false;
    }
    return true;
  }

  // Chooses the same operator in the layers of the next group.
  void choose(const Host& host, uint32_t s, bool all) {
    const tierd_site_view& site = host.site(s);
    for (uint32_t later = s + 1; later < host.n_sites(); ++later) {
      const tierd_site_view& other = host.site(later);
      if (!same_operator(site, other) || other.layer_group != site.layer_group + 1) continue;
      if (all || worth_it(host, site, other.layer - site.layer, sparsity_[s])) wished_[s].push_back(later);
    }
  }

  static bool worth_it(const Host& host, const tierd_site_view& site, uint32_t distance, double sparsity) {
    const std::string name = site.name;
    const std::string table = name + ".ahead";
    if (!host.has_tensor(table.c_str())) return ends_with(name, ".qkv") || ends_with(name, ".up");
    const tierd_tensor_view precision = host.tensor(table.c_str());
    // The table has one dimension, because plugins cannot read matrices.
    if (precision.n_dims != 1 || precision.dims[0] % kLevels != 0)
      throw Failure(TIERD_E_INVALID,
                    table + " should be " + std::to_string(kLevels) + " shares for each distance");
    if (distance * kLevels > precision.dims[0]) return false;
    const auto level =
        static_cast<uint64_t>(std::lround(std::clamp(sparsity * 10, 1.0, double{kLevels}))) - 1;
    return precision.data[(distance - 1) * kLevels + level] >= host.number("least_precision");
  }

  static bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
  }

  Host host_;
  std::vector<double> sparsity_;  // [sites]
  double over_fetch_;
  std::vector<std::vector<uint32_t>> wished_;  // [sites] later sites, ascending
  // Each call fills these anew; they are members so that their memory is reused.
  std::vector<float> magnitudes_;
  Rank rank_;
  std::vector<uint8_t> wanted_;
  std::vector<uint32_t> channels_;
  std::vector<float> scores_;  // by neuron, then by wished channel
};

}  // namespace tierd
#endif
