// Two thin matrices a site guess which neurons of a feed-forward network fire (LLM in a flash, 3.2; Deja Vu):
//
//   score = B (A x) + bias,  active where sigmoid(score) > threshold
//
// x is what the network computes from in this very layer. For each site SITE the plugin reads the tensors
//
//   SITE.a     [rank x n_in]
//   SITE.b     [neurons x rank]
//   SITE.bias  [neurons], if there is one
//
// as `tier-train predictor` writes them. A site without them is active as a whole.
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/row_scores.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::lossy(tierd::number("threshold", "0.5", 0, 1,
                               "how probable it must be that a neuron fires; 0 takes all of them")),
};

constexpr const char* kManual =
    "Needs tables: tier-profile records what a model's layers compute from and which neurons fire, "
    "tier-train "
    "predictor makes tables of that, then predictor.tensors = \"FILE.safetensors\". What is missed shows in "
    "the "
    "report with scheduler.measure_every.";

class LowRank {
 public:
  static constexpr uint32_t kCaps = TIERD_PREDICTOR_NEEDS_X | TIERD_PREDICTOR_LOSSY | TIERD_PREDICTOR_SCORES;

  explicit LowRank(const tierd::Host& host) : host_(host), tables_(host.n_sites()), active_(host) {
    const double threshold = host.number("threshold");
    takes_all_ = threshold == 0;
    bound_ = threshold == 1 ? std::numeric_limits<float>::infinity()
                            : static_cast<float>(std::log(threshold / (1 - threshold)));
    bool any = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      if (!host.has_tensor((std::string(host.site(s).name) + ".a").c_str())) continue;
      tables_[s] = read(host.site(s));
      any = true;
    }
    if (!any && host.n_sites() != 0)
      host.log(TIERD_LOG_WARNING, "there are no tables for any site: everything is active");
  }

  int reads_x(uint32_t site) const { return tables_[site] && !takes_all_ ? 1 : 0; }

  void predict(uint32_t site, const tierd_rows_view& rows, tierd_set_out& out) {
    out.all = reads_x(site) == 0 ? 1 : 0;
    if (out.all != 0) return;
    const Tables& tables = *tables_[site];
    const auto score = [&](const float* x, uint32_t n_rows, float* scores) {
      inner_.resize(uint64_t{n_rows} * tables.rank);
      host_.linear(tables.a, x, n_rows, inner_.data());
      host_.linear(tables.b, inner_.data(), n_rows, scores);
    };
    active_.predict(
        tables.n, tables.bias, rows, score, [&](const float*) { return bound_; }, out);
  }

 private:
  struct Tables {
    uint32_t n = 0;
    uint32_t rank = 0;
    uint32_t a = 0;  // tensors
    uint32_t b = 0;
    const float* bias = nullptr;
  };

  Tables read(const tierd_site_view& site) const {
    const std::string name = site.name;
    const auto check = [&](const std::string& tensor, bool right, const std::string& shape) {
      if (!right) throw tierd::Failure(TIERD_E_INVALID, tensor + " should be " + shape);
    };
    const tierd_tensor_view a = host_.tensor((name + ".a").c_str());
    check(name + ".a", a.n_dims == 2 && a.dims[1] == site.n_in,
          "a matrix of " + std::to_string(site.n_in) + " columns");
    const tierd_tensor_view b = host_.tensor((name + ".b").c_str());
    check(name + ".b", b.n_dims == 2 && b.dims[0] == site.n && b.dims[1] == a.dims[0],
          std::to_string(site.n) + " x " + std::to_string(a.dims[0]));
    return {site.n, static_cast<uint32_t>(a.dims[0]), a.tensor, b.tensor, tierd::bias_of(host_, site)};
  }

  tierd::Host host_;
  std::vector<std::optional<Tables>> tables_;  // [sites]
  bool takes_all_ = false;
  float bound_ = 0;  // of a score
  tierd::RowScores active_;
  std::vector<float> inner_;  // of one call, kept for its memory
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(
        tierd::predictor<LowRank>("low-rank", "1.0", "two thin matrices guess which neurons fire"), kParams),
    kManual))
