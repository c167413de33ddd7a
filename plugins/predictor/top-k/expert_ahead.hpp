// Which experts of a mixture are read ahead, where each has channels of its own: at a layer's first expert,
// what it computes from is shown to the layer's router, whose other choices come next, and to the next
// layer's router, whose choices are a guess. Of each the channels that are large at present are wished for:
// in this layer these are the ones that will be used, in the next one those that probably will.
//
// Of the layers' experts the tensor
//
//   layers.N.experts.router  [experts x n_in], as `tier-train router` writes it
//
// Nothing is foreseen of a layer without one.
#ifndef TIERD_TOP_K_EXPERT_AHEAD_HPP
#define TIERD_TOP_K_EXPERT_AHEAD_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

class ExpertAhead {
 public:
  explicit ExpertAhead(const Host& host) : host_(host), layer_of_(host.n_sites(), kNone) {
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& site = host.site(s);
      if (site.parent == TIERD_NO_SITE) continue;
      if (layers_.empty() || layers_.back().parent != site.parent) {
        layers_.push_back({site.parent, name_of_router(site), std::nullopt, {}});
        layer_of_[site.parent] = static_cast<uint32_t>(layers_.size() - 1);
      }
      layer_of_[s] = static_cast<uint32_t>(layers_.size() - 1);
      if (is_up(site)) layers_.back().ups.push_back(s);
    }
    for (Layer& layer : layers_) layer.router = read_router(layer);
  }

  // A pass through a site begins, of so many rows: how many experts a row uses is the model's, and is seen.
  void passed(uint32_t s, uint32_t rows) {
    if (layer_of_[s] == kNone) return;
    if (host_.site(s).parent == TIERD_NO_SITE) {
      if (uses_ != 0) picks_ = (uses_ + rows_ - 1) / rows_;
      rows_ = rows;
      uses_ = passes_ = 0;
    } else if (is_up(host_.site(s))) {
      uses_ += rows;
      ++passes_;
    }
  }

  // Whether there is anything to wish for: at the first expert, and where rows use different ones at each of
  // them.
  bool wishes(uint32_t s) const {
    const tierd_site_view& site = host_.site(s);
    return site.parent != TIERD_NO_SITE && picks_ != 0 && is_up(site) && (passes_ == 1 || rows_ != 1);
  }

  // `channels`: those of the present site that are large.
  void wish(uint32_t s, const tierd_rows_view& rows, const std::vector<uint32_t>& channels,
            tierd_ahead_out& out) {
    for (uint32_t layer = layer_of_[s]; layer <= layer_of_[s] + 1 && layer < layers_.size(); ++layer) {
      if (!layers_[layer].router) continue;
      choose(layers_[layer], rows);
      for (size_t expert = 0; expert < chosen_.size() && out.n < out.cap; ++expert) {
        const uint32_t up = layers_[layer].ups[expert];
        if (up <= s || chosen_[expert] == 0) continue;
        out.item[out.n++] = {up, up - s, static_cast<uint32_t>(channels.size()), channels.data()};
      }
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Layer {
    uint32_t parent;
    std::string name_of_router;
    std::optional<uint32_t> router;  // a tensor
    std::vector<uint32_t> ups;       // [experts]
  };

  static bool is_up(const tierd_site_view& site) {
    const std::string name = site.name;
    return name.size() > 3 && name.compare(name.size() - 3, 3, ".up") == 0;
  }

  // Of the layer of an expert's operator.
  static std::string name_of_router(const tierd_site_view& site) {
    const std::string of = site.name;
    return of.substr(0, of.find(".experts.")) + ".experts.router";
  }
  std::optional<uint32_t> read_router(const Layer& layer) const {
    const std::string& name = layer.name_of_router;
    if (layer.ups.empty() || !host_.has_tensor(name.c_str())) return std::nullopt;
    const tierd_tensor_view router = host_.tensor(name.c_str());
    const size_t experts = layer.ups.size();
    const uint32_t n_in = host_.site(layer.ups.front()).n_in;
    if (router.n_dims != 2 || router.dims[0] != experts || router.dims[1] != n_in) {
      throw Failure(TIERD_E_INVALID,
                    name + " should be " + std::to_string(experts) + " x " + std::to_string(n_in));
    }
    return router.tensor;
  }

  // The union over the rows of those of the largest scores.
  void choose(const Layer& layer, const tierd_rows_view& rows) {
    const auto n = static_cast<uint32_t>(layer.ups.size());
    const uint32_t k = std::min(picks_, n);
    scores_.resize(uint64_t{rows.rows} * n);
    host_.linear(*layer.router, rows.x, rows.rows, scores_.data());
    order_.resize(n);
    chosen_.assign(n, 0);
    for (uint32_t r = 0; r < rows.rows; ++r) {
      float* scores = scores_.data() + uint64_t{r} * n;
      std::replace_if(
          scores, scores + n, [](float score) { return std::isnan(score); }, 0.0f);
      std::iota(order_.begin(), order_.end(), 0u);
      std::partial_sort(order_.begin(), order_.begin() + k, order_.end(), [&](uint32_t a, uint32_t b) {
        return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
      });
      for (uint32_t i = 0; i < k; ++i) chosen_[order_[i]] = 1;
    }
  }

  Host host_;
  std::vector<Layer> layers_;
  std::vector<uint32_t> layer_of_;  // [sites] experts' operators, and their parents
  uint32_t picks_ = 0;              // experts that a row uses
  uint32_t rows_ = 0, uses_ = 0;    // of the present layer: rows, and experts that they used so far
  uint32_t passes_ = 0;             // its experts so far
  // Of one call.
  std::vector<float> scores_;
  std::vector<uint32_t> order_;
  std::vector<uint8_t> chosen_;
};

}  // namespace tierd
#endif
