// The inputs of largest magnitude (ActiveFlow, 2.1; TEAL): for every operator that is cut into channels,
// inputs with |x| below a threshold are left out of the product.
//
//   y = W (x * mask),  mask_j = |x_j| > t
//
// x is the operator's input in this very layer, so the active set is exact. t is the k-th largest |x| of this
// row, or, with tables, a threshold that is the same for all rows. For each site SITE the tensor
//
//   SITE.thresholds  [levels]: of |x|, for sparsity 0 to 1 in equal steps, rising
//
// holds the quantiles of |x| over a text.
//
// With mask = cache-aware a single row uses every resident channel, and the missing ones that are cheapest to
// read, such that no more of x's energy is lost than without. Several rows use the resident channels and the
// largest inputs of each row. Sites that are not cut into channels are active as a whole. Inputs that are
// zero are never active, which loses nothing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plugins/predictor/top-k/allocation.hpp"
#include "plugins/predictor/top-k/cache_aware_sites.hpp"
#include "plugins/predictor/top-k/look_ahead.hpp"
#include "plugins/predictor/top-k/rank.hpp"
#include "tierd/plugin.hpp"
#include "tierd/policy/row_scores.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::lossy(tierd::number("sparsity", "0.5", 0, 1,
                               "share of an operator's inputs that is left out; 0: only zeros are")),
    tierd::lossy(tierd::text("allocation", "uniform", "uniform|measured",
                             "uniform: every operator leaves out that share; measured: each has a share of "
                             "its own, with the smallest loss for the same bytes (SITE.lost of the tables), "
                             "for models with ReLU; with SiLU it loses more")),
    tierd::lossy_by_memory(tierd::text(
        "mask", "largest", "largest|cache-aware",
        "largest: exactly the largest inputs are used; cache-aware: all resident ones, and of the rest those "
        "that are read in the shortest time, until as much of the inputs' energy is used")),
    tierd::lossy(tierd::number(
        "missing_ahead", "0", 0, 1,
        "with a cache-aware mask: number of missing channels to prefetch for the next token, as a share of "
        "those that the operator read for the last one; the first ones, for stores with an order by rate")),
    tierd::kLookAheadParams[0],
    tierd::kLookAheadParams[1],
    tierd::kLookAheadParams[2],
    tierd::kLookAheadParams[3],
};

constexpr const char* kManual =
    "Needs a store of layout channel-group. Without tables exactly the share `sparsity` of each row's inputs "
    "is left out. With tables (predictor.tensors) the inputs below thresholds are left out, which were "
    "measured on a text and leave out this share on average. Use a cache-aware mask with a cache whose "
    "content does not depend on use: pinned keeps the most used channels, if the store has them in that "
    "order. With this mask the generated text depends on the memory, on the disk, and on the rows that are "
    "computed together. Where nothing is left out (sparsity 0), all channels of the next layers are "
    "prefetched.";

class TopK {
 public:
  static constexpr uint32_t kCaps = TIERD_PREDICTOR_NEEDS_X | TIERD_PREDICTOR_LOSSY | TIERD_PREDICTOR_SCORES;

  explicit TopK(const tierd::Host& host)
      : sparsity_(sparsity_of(host)), sites_(host.n_sites()), active_(host), ahead_(host, sparsity_) {
    if (std::string(host.text("mask")) == "cache-aware")
      cache_aware_.emplace(host, host.number("missing_ahead"));
    bool any = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& site = host.site(s);
      if (site.axis != TIERD_AXIS_CHANNEL) continue;
      any = true;
      sites_[s] = {site.n, true, sparsity_[s], threshold_of(host, site, sparsity_[s])};
    }
    if (!any && host.n_sites() != 0)
      throw tierd::Failure(TIERD_E_UNSUPPORTED,
                           "no site is cut into channels; use --set model.layout=channel-group, or compute "
                           "all neurons with --set predictor.name=dense");
  }

  // A cache-aware mask of several rows uses all channels that any of them needs.
  uint32_t caps() const { return cache_aware_ ? kCaps : kCaps | TIERD_PREDICTOR_ROWS_APART; }
  int reads_x(uint32_t site) const { return sites_[site].cut ? 1 : 0; }

  void predict(uint32_t site, const tierd_rows_view& rows, tierd_set_out& out) {
    out.all = reads_x(site) == 0 ? 1 : 0;
    if (out.all != 0) return;
    const Channels& channels = sites_[site];
    const auto magnitudes = [&](const float* x, uint32_t n_rows, float* scores) {
      std::transform(x, x + uint64_t{n_rows} * channels.n, scores,
                     [](float value) { return std::abs(value); });
    };
    const auto bound = [&](const float* scores) {
      return channels.threshold >= 0 ? channels.threshold : bound_of(scores, channels);
    };
    if (cache_aware_ && rows.rows == 1) return cache_aware_->predict(site, rows.x, bound, out);
    active_.predict(channels.n, nullptr, rows, magnitudes, bound, out);
    if (cache_aware_) cache_aware_->share(site, rows, out);
  }

  void look_ahead(uint32_t site, const tierd_rows_view& rows) {
    ahead_.wish(site, sites_[site].n, rows);
    if (cache_aware_ && rows.rows == 1) cache_aware_->look_ahead(site);
  }

 private:
  struct Channels {
    uint32_t n = 0;
    bool cut = false;
    double sparsity = 0;
    float threshold = -1;  // negative: each row has its own
  };

  // Returns [sites] the share that each leaves out.
  static std::vector<double> sparsity_of(const tierd::Host& host) {
    const double sparsity = host.number("sparsity");
    if (sparsity == 0 || std::string(host.text("allocation")) == "uniform")
      return std::vector<double>(host.n_sites(), sparsity);
    return tierd::Allocation::measured(host, sparsity);
  }

  // Returns the bound that the largest values of a row exceed. Values equal to the last of them are active,
  // too; zeros never are.
  float bound_of(const float* scores, const Channels& channels) {
    const uint32_t n = channels.n;
    const auto left_out = static_cast<uint32_t>(std::lround(channels.sparsity * n));
    if (left_out == 0) return 0;
    if (left_out == n) return std::numeric_limits<float>::infinity();
    return std::max(0.0F, std::nextafter(rank_.of(scores, n, left_out), -1.0F));
  }

  static float threshold_of(const tierd::Host& host, const tierd_site_view& site, double sparsity) {
    const std::string name = std::string(site.name) + ".thresholds";
    if (sparsity == 0 || !host.has_tensor(name.c_str())) return -1;
    const tierd_tensor_view levels = host.tensor(name.c_str());
    const bool rising = levels.n_dims == 1 && levels.dims[0] >= 2 && levels.data[0] >= 0 &&
                        std::is_sorted(levels.data, levels.data + levels.dims[0]);
    if (!rising)
      throw tierd::Failure(TIERD_E_INVALID, name + " should be two or more rising values, none below zero");
    if (levels.data[levels.dims[0] - 1] == 0) return -1;  // an expert that the text never used
    const double at = sparsity * static_cast<double>(levels.dims[0] - 1);
    const auto below = static_cast<uint64_t>(at);
    const uint64_t above = std::min<uint64_t>(below + 1, levels.dims[0] - 1);
    const auto share = static_cast<float>(at - std::floor(at));
    return levels.data[below] + share * (levels.data[above] - levels.data[below]);
  }

  std::vector<double> sparsity_;  // [sites]
  std::vector<Channels> sites_;
  tierd::RowScores active_;
  tierd::LookAhead ahead_;
  tierd::Rank rank_;
  std::optional<tierd::CacheAwareSites> cache_aware_;  // none: the largest inputs are used
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(
        tierd::predictor<TopK>("top-k", "1.0", "computes from the inputs of largest magnitude"), kParams),
    kManual))
