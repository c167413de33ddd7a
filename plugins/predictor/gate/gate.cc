// The gate of a gated network is its own predictor if the activation cuts off (LLM in a flash, Llama-2 with
// FATReLU): a neuron whose gate stays below the cut contributes exactly nothing. The gate's rows, a third of
// the network, stay in memory; up and down need to be read for active neurons only. For each site SITE the
// plugin reads the tensors
//
//   SITE.gate  [neurons x n_in]
//   SITE.bias  [neurons], if there is one
//
// as `tier-train gate` writes them. All neurons of a site without them are active.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/row_scores.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::lossy(tierd::number("threshold", "0", -1e6, 1e6,
                               "gate value above which a neuron fires (0 for ReLU, t for FATReLU)")),
    tierd::lossy(tierd::number(
        "margin", "0.001", 0, 1,
        "a neuron is also active if its gate is below the threshold by at most this share of the row's "
        "largest gate, because the model adds the gate in another order and rounds otherwise")),
};

constexpr const char* kManual =
    "Exact except for rounding, which the margin covers. Needs tables: write them with `tier train gate "
    "MODEL -o gate.safetensors`, and set predictor.tensors = \"gate.safetensors\".";

class Gate {
 public:
  static constexpr uint32_t kCaps =
      TIERD_PREDICTOR_NEEDS_X | TIERD_PREDICTOR_LOSSY | TIERD_PREDICTOR_SCORES | TIERD_PREDICTOR_ROWS_APART;

  explicit Gate(const tierd::Host& host)
      : host_(host),
        threshold_(static_cast<float>(host.number("threshold"))),
        margin_(static_cast<float>(host.number("margin"))),
        gates_(host.n_sites()),
        active_(host) {
    bool any = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      if (!host.has_tensor((std::string(host.site(s).name) + ".gate").c_str())) continue;
      gates_[s] = read(host.site(s));
      any = true;
    }
    if (!any && host.n_sites() != 0)
      throw tierd::Failure(
          TIERD_E_UNSUPPORTED,
          "no site has gates; for a model with gates and ReLU, write them with tier train gate MODEL -o "
          "gate.safetensors and use them with --set predictor.tensors=gate.safetensors; or compute all "
          "neurons with --set predictor.name=dense");
  }

  int reads_x(uint32_t site) const { return gates_[site] ? 1 : 0; }

  void predict(uint32_t site, const tierd_rows_view& rows, tierd_set_out& out) {
    out.all = reads_x(site) == 0 ? 1 : 0;
    if (out.all != 0) return;
    const Rows& gate = *gates_[site];
    const auto score = [&](const float* x, uint32_t n_rows, float* gates) {
      host_.linear(gate.tensor, x, n_rows, gates);
    };
    const auto bound = [&](const float* gates) {
      float largest = 0;
      for (uint32_t i = 0; i < gate.n; ++i) largest = std::max(largest, std::abs(gates[i]));
      return threshold_ - margin_ * largest;
    };
    active_.predict(gate.n, gate.bias, rows, score, bound, out);
  }

 private:
  struct Rows {
    uint32_t n = 0;
    uint32_t tensor = 0;
    const float* bias = nullptr;
  };

  Rows read(const tierd_site_view& site) const {
    const std::string name = site.name;
    const tierd_tensor_view gate = host_.tensor((name + ".gate").c_str());
    if (gate.n_dims != 2 || gate.dims[0] != site.n || gate.dims[1] != site.n_in) {
      throw tierd::Failure(TIERD_E_INVALID, name + ".gate should be " + std::to_string(site.n) + " x " +
                                                std::to_string(site.n_in));
    }
    return {site.n, gate.tensor, tierd::bias_of(host_, site)};
  }

  tierd::Host host_;
  float threshold_;
  float margin_;
  std::vector<std::optional<Rows>> gates_;  // [sites]
  tierd::RowScores active_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::predictor<Gate>("gate", "1.0",
                                              "predicts from the gate of a gated network which neurons fire"),
                       kParams),
    kManual))
