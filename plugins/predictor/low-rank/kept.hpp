// The number of a site's neurons that a ranking predictor keeps: a share, or as many as a memory has room
// for.
#ifndef TIERD_LOW_RANK_KEPT_HPP
#define TIERD_LOW_RANK_KEPT_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/percents.hpp"
#include "tierd/policy/split.hpp"

namespace tierd {

class Kept {
 public:
  // Reads the parameters `keep`, `fit_memory` and `mix`. Throws Failure if one of them is malformed.
  explicit Kept(const Host& host)
      : host_(host),
        share_(host.number("keep")),
        fits_memory_(host.flag("fit_memory")),
        mix_(percents("mix", host.text("mix"))) {}

  bool by_threshold() const { return share_ == 0 && !fits_memory_; }

  // Reads SITE.kept of every ranked site: the part of its result that a share of its neurons, those with the
  // highest scores, keeps. Throws Failure if neurons are dropped for lack of memory and a site's tables do
  // not have the loss.
  template <class Ranked>
  void read_curves(Ranked ranked) {
    if (!fits_memory_) return;
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      if (!ranked(s)) continue;
      const std::string name = std::string(host_.site(s).name) + ".kept";
      if (!host_.has_tensor(name.c_str()))
        throw Failure(
            TIERD_E_UNSUPPORTED,
            "fit_memory drops neurons that do not fit in memory, but the tables do not have its loss (" +
                name +
                "); add it with tier profile -m MODEL TEXT -o activations.safetensors and tier train judge "
                "MODEL activations.safetensors TABLES -o OUT; or use predictor.threshold instead with --set "
                "predictor.fit_memory=false");
      const tierd_tensor_view curve = host_.tensor(name.c_str());
      if (curve.n_dims != 1 || curve.dims[0] < 2)
        throw Failure(TIERD_E_INVALID, name + " should be two or more values");
      curves_.emplace_back(curve.data, curve.data + curve.dims[0]);
    }
  }

  // Returns how many of a site's `n` neurons are kept. ranked(site): whether the neurons of that site are
  // ranked; all ranked sites keep the same share, at least one neuron. Throws Failure if they must fit a
  // memory that has no room for any.
  template <class Ranked>
  uint32_t neurons(uint32_t n, Ranked ranked) const {
    const double share = fits_memory_ ? share_of_memory(ranked) : share_;
    if (fits_memory_ && share != told_) tell(share);
    return std::clamp(static_cast<uint32_t>(std::lround(share * n)), uint32_t{1}, n);
  }

 private:
  // Sets the metric `kept_mass`, the mean over the sites.
  void tell(double share) const {
    told_ = share;
    double sum = 0;
    for (const std::vector<float>& curve : curves_) {
      const double at = share * static_cast<double>(curve.size() - 1);
      const auto below = std::min(static_cast<size_t>(at), curve.size() - 2);
      sum += curve[below] + (at - static_cast<double>(below)) * (curve[below + 1] - curve[below]);
    }
    if (!curves_.empty()) host_.metric("kept_mass", sum / static_cast<double>(curves_.size()));
  }

  // Returns the mean bytes of a neuron of the site.
  double neuron_bytes(const tierd_site_view& site, uint32_t memory) const {
    double bytes = 0;
    for (uint32_t i = 0; i < std::min<size_t>(site.n_editions, mix_.size()); ++i)
      bytes += mix_[i] * host_.edition(host_.held(memory, site.editions[i])).bytes;
    return bytes;
  }

  // Returns the share of neurons that the first unit's memory has room for, beside the sites that are not
  // ranked.
  template <class Ranked>
  double share_of_memory(Ranked ranked) const {
    const uint32_t memory = host_.unit(0).memory;
    double room = static_cast<double>(host_.memory_bytes(memory));
    double wanted = 0;
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      const tierd_site_view& site = host_.site(s);
      if (ranked(s)) {
        wanted += site.n * neuron_bytes(site, memory);
      } else if (site.given == 0) {
        const tierd_edition_view& best = host_.edition(host_.held(memory, site.editions[0]));
        room -= static_cast<double>(site.n) * best.bytes;
      }
    }
    if (wanted != 0 && room <= 0) {
      throw Failure(TIERD_E_NO_SPACE, std::string("fit_memory: ") + host_.memory(memory).tier + " lacks " +
                                          std::to_string(static_cast<uint64_t>(-room) >> 20) +
                                          " MiB for the weights that every step uses whole, and has no room "
                                          "for neurons; set a larger capacity, or set keep");
    }
    return wanted == 0 ? 1 : std::min(room / wanted, 1.0);
  }

  Host host_;
  double share_ = 0;
  bool fits_memory_ = false;
  std::vector<double> mix_;                 // [editions of a site] shares of the kept neurons
  std::vector<std::vector<float>> curves_;  // of each ranked site: the result by share of neurons
  mutable double told_ = -1;                // the share for which the metric was set
};

}  // namespace tierd
#endif
