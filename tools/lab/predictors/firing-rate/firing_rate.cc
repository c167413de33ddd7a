// How often each neuron fires, as heat: a mean over the tokens in which the latest count most, and before the
// first one the share of the prompt's tokens. It is compared with Hermes' table of states. The four bits of a
// state, which go up by 4 and down by 1, only distinguish neurons that fire more or less than every fifth
// token, and few fire that often; a rate ranks all of them.
//
// As [predictor] it leaves nothing out.
#include <cmath>
#include <cstdint>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/silence.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer(
        "tokens", "32", 1, 1 << 16,
        "number of tokens over which the rate is averaged: the latest one has the weight 1 / tokens"),
};

struct Site {
  std::vector<float> rates;      // [n]
  std::vector<uint32_t> counts;  // [n] of the present or last prompt's tokens
  uint32_t tokens = 0;           // of that prompt
};

class FiringRate {
 public:
  explicit FiringRate(const tierd::Host& host)
      : host_(host), newest_(1.0F / static_cast<float>(host.integer("tokens"))), sites_(host.n_sites()) {
    tierd::need_silent_neurons(host);
    for (uint32_t s = 0; s < host.n_sites(); ++s) sites_[s].rates.assign(host.site(s).n, 0);
  }

  void fired(const tierd_fired_view& told) {
    Site& site = sites_[told.site];
    if (told.prompt != 0) {
      site.counts.resize(site.rates.size(), 0);
      for (uint32_t i = 0; i < told.n; ++i) site.counts[told.idx[i]] += told.count[i];
      site.tokens += told.rows;
      return;
    }
    begin(site);
    // A batch's rows are tokens of the same time.
    for (float& rate : site.rates) rate -= rate * newest_;
    for (uint32_t i = 0; i < told.n; ++i)
      site.rates[told.idx[i]] += newest_ * static_cast<float>(told.count[i]) / static_cast<float>(told.rows);
  }

  // Maps the square root of the rate to heat, so that rare neurons are distinguished, too.
  void heat(uint32_t s, uint8_t* heat) {
    begin(sites_[s]);
    for (size_t i = 0; i < sites_[s].rates.size(); ++i)
      heat[i] = static_cast<uint8_t>(std::lround(TIERD_HOTTEST * std::sqrt(sites_[s].rates[i])));
  }

  void predict(uint32_t /*site*/, const tierd_rows_view& /*rows*/, tierd_set_out& out) { out.all = 1; }

 private:
  static void begin(Site& site) {
    if (site.tokens == 0) return;
    for (size_t i = 0; i < site.rates.size(); ++i)
      site.rates[i] = static_cast<float>(site.counts[i]) / static_cast<float>(site.tokens);
    site.counts.assign(site.rates.size(), 0);
    site.tokens = 0;
  }

  tierd::Host host_;
  const float newest_;
  std::vector<Site> sites_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(
    tierd::predictor<FiringRate>("firing-rate", "1.0",
                                 "every neuron is active; measures how often each fires, as heat"),
    kParams))
