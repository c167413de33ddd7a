// For mixtures of experts. Each layer's own router, in the model, decides which experts compute; this plugin
// looks ahead. It applies the next layer's router to the input of the present layer's experts, and reads the
// chosen experts while the layers between compute. A wrong guess costs a read and changes no result; if too
// many are wrong nothing is read ahead (guess_record.hpp). Sites that every step uses whole are read ahead
// along the walk, as `dense` does.
//
// For each site SITE with experts the plugin reads the tensor SITE.router [experts x n_in], as `tier-train
// router` writes it. It foresees nothing for a site without one.
#include <algorithm>
#include <bitset>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "plugins/predictor/router/guess_record.hpp"
#include "tierd/plugin.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer("sites_ahead", "8", 0, 63,
                   "number of following sites whose neurons are prefetched, of those that a step uses whole, "
                   "as far as the staging has room"),
    tierd::integer("more", "0", 0, 1024,
                   "number of experts for each row that are prefetched beyond the predicted ones: fewer "
                   "misses, more unused reads"),
    tierd::number("least_precision", "0.85", 0, 1,
                  "minimum share of a layer's predicted experts that were right; below it, none of the layer "
                  "are prefetched. Prefetching is faster where this share is more than 1 - computing time / "
                  "reading time (tier plan has it for a machine)"),
};

constexpr const char* kManual =
    "Lossless. Needs routers: set predictor.tensors = \"model\" for those of the running model, or to a file "
    "that `tier train router MODEL -o FILE` writes.";

class Router {
 public:
  static constexpr uint32_t kCaps = TIERD_PREDICTOR_NEEDS_X;

  explicit Router(const tierd::Host& host)
      : host_(host),
        sites_ahead_(static_cast<uint32_t>(host.integer("sites_ahead"))),
        more_(static_cast<uint32_t>(host.integer("more"))),
        next_(host.n_sites()),
        chosen_(host.n_sites(), 0),
        record_(host.n_sites(), host.number("least_precision")) {
    uint32_t before = TIERD_NO_SITE;
    bool any = false;
    uint32_t mixtures = 0;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      if (host.site(s).axis != TIERD_AXIS_EXPERT) continue;
      ++mixtures;
      if (before != TIERD_NO_SITE) next_[before] = read(s, host.site(before));
      any = any || (before != TIERD_NO_SITE && next_[before]);
      before = s;
    }
    if (any || host.n_sites() == 0) return;
    if (mixtures == 0)
      throw tierd::Failure(TIERD_E_UNSUPPORTED,
                           "this model is not a mixture, so it has no experts to predict; use --config "
                           "configs/hybrid.toml, or --set predictor.name=dense");
    if (mixtures > 1)
      throw tierd::Failure(TIERD_E_UNSUPPORTED,
                           "no site has a router; use the model's with --set predictor.tensors=model, or "
                           "prefetch no experts with --set predictor.name=dense");
  }

  int reads_x(uint32_t site) const { return next_[site] ? 1 : 0; }

  void predict(uint32_t, const tierd_rows_view&, tierd_set_out& out) { out.all = 1; }

  void look_ahead(uint32_t site, const tierd_rows_view& rows) {
    const std::optional<Next>& next = next_[site];
    const uint32_t n_sites = host_.n_sites();
    const uint32_t to_next = next ? next->site - site : 0;
    uint32_t ahead = 0;
    for (uint32_t d = 1; (ahead < sites_ahead_ || d <= to_next) && d < n_sites; ++d) {
      const uint32_t later = (site + d) % n_sites;
      const bool passes = host_.surely_passes(site, later);
      if (passes && ahead < sites_ahead_ && host_.site(later).given == 0) host_.wish(later, d);
      ahead += passes ? 1 : 0;
      if (!next || later != next->site || rows.x == nullptr) continue;
      foresee(site, *next, rows);
      if (wished_.empty()) continue;
      record_.guess(later, wished_);
      if (record_.pays(later, rows.rows))
        host_.wish(later, d, wished_.data(), static_cast<uint32_t>(wished_.size()));
    }
  }

  // Learns the number of experts of a row, which is the model's, from the chosen sets.
  void observe(const tierd_set_view&, const tierd_set_view& truth) {
    if (host_.site(truth.site).axis != TIERD_AXIS_EXPERT || truth.rows == 0) return;
    record_.judge(truth);
    host_.metric("guesses_right", record_.share_of(1));
    const uint32_t words = (truth.rows + 63) / 64;
    uint64_t uses = truth.row_mask == nullptr ? uint64_t{truth.n} * truth.rows : 0;
    for (uint64_t w = 0; truth.row_mask != nullptr && w < uint64_t{truth.n} * words; ++w)
      uses += std::bitset<64>(truth.row_mask[w]).count();
    chosen_[truth.site] = static_cast<uint32_t>((uses + truth.rows - 1) / truth.rows);
  }

 private:
  // The next site with experts, and its router.
  struct Next {
    uint32_t site = 0;
    uint32_t tensor = 0;
  };

  std::optional<Next> read(uint32_t s, const tierd_site_view& before) const {
    const tierd_site_view& site = host_.site(s);
    const std::string name = std::string(site.name) + ".router";
    if (!host_.has_tensor(name.c_str())) return std::nullopt;
    const tierd_tensor_view router = host_.tensor(name.c_str());
    if (router.n_dims != 2 || router.dims[0] != site.n || router.dims[1] != site.n_in ||
        before.n_in != site.n_in) {
      throw tierd::Failure(TIERD_E_INVALID,
                           name + " should be " + std::to_string(site.n) + " x " + std::to_string(site.n_in));
    }
    return Next{s, router.tensor};
  }

  // Collects the experts with the largest scores of each row, and unites them over the rows.
  void foresee(uint32_t site, const Next& next, const tierd_rows_view& rows) {
    const uint32_t n = host_.site(next.site).n;
    const uint32_t k = std::min(chosen_[site] + more_, n);
    scores_.resize(uint64_t{rows.rows} * n);
    host_.linear(next.tensor, rows.x, rows.rows, scores_.data());
    order_.resize(n);
    wanted_.assign(n, 0);
    for (uint32_t r = 0; r < rows.rows; ++r) {
      float* scores = scores_.data() + uint64_t{r} * n;
      std::replace_if(
          scores, scores + n, [](float score) { return std::isnan(score); }, 0.0f);
      std::iota(order_.begin(), order_.end(), 0u);
      std::partial_sort(order_.begin(), order_.begin() + k, order_.end(), [&](uint32_t a, uint32_t b) {
        return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
      });
      for (uint32_t i = 0; i < k; ++i) wanted_[order_[i]] = 1;
    }
    wished_.clear();
    for (uint32_t i = 0; i < n; ++i) {
      if (wanted_[i] != 0) wished_.push_back(i);
    }
  }

  tierd::Host host_;
  uint32_t sites_ahead_;
  uint32_t more_;
  std::vector<std::optional<Next>> next_;  // [sites]
  std::vector<uint32_t> chosen_;           // [sites] experts a row in the last pass
  tierd::GuessRecord record_;
  // Each call fills these anew.
  std::vector<float> scores_;
  std::vector<uint32_t> order_;
  std::vector<uint8_t> wanted_;
  std::vector<uint32_t> wished_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(
        tierd::predictor<Router>(
            "router", "1.0",
            "prefetches the experts that the next layer's router chooses from the present layer's input"),
        kParams),
    kManual))
