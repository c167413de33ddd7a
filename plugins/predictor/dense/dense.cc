// Predicts that every neuron is active, as in a dense model. It looks ahead along the sites and into the next
// step, so that the disk also reads during the last layer. It wishes for no experts of a mixture: only the
// router knows which ones a step will use.
#include "tierd/plugin.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer("sites_ahead", "8", 0, 63,
                   "number of following sites that are prefetched, as far as the staging has room"),
};

class Dense {
 public:
  explicit Dense(const tierd::Host& host)
      : host_(host),
        n_sites_(host.n_sites()),
        sites_ahead_(static_cast<uint32_t>(host.integer("sites_ahead"))) {}

  void predict(uint32_t, const tierd_rows_view&, tierd_set_out& out) { out.all = 1; }

  void look_ahead(uint32_t site, const tierd_rows_view&) {
    uint32_t ahead = 0;
    for (uint32_t d = 1; ahead < sites_ahead_ && d < n_sites_; ++d) {
      const tierd_site_view& later = host_.site((site + d) % n_sites_);
      if (!host_.surely_passes(site, later.site)) continue;
      ++ahead;
      if (later.given == 0) host_.wish(later.site, d);
    }
  }

 private:
  tierd::Host host_;
  uint32_t n_sites_;
  uint32_t sites_ahead_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(tierd::predictor<Dense>("dense", "1.0", "every neuron is active"), kParams))
