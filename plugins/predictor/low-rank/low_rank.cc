// Two thin matrices a site predict which neurons of a feed-forward network fire (LLM in a flash, 3.2; Deja
// Vu):
//
//   score = B (A x) + bias,  active where sigmoid(score) > threshold
//
// or those of the greatest scores in each row: a share of a site's neurons, or as many as the memory that
// they are computed from holds (M2Cache, 5.1: "top-k"). x is the network's input in this very layer. For each
// site SITE the plugin reads the tensors
//
//   SITE.a     [rank x n_in]
//   SITE.b     [neurons x rank]
//   SITE.bias  [neurons], if there is one
//   SITE.kept  [levels], for fit_memory: the part of the result that the highest-ranked neurons keep
//
// as `tier-train predictor` writes them. All neurons of a site without them are active.
//
// The inputs of consecutive layers are similar, so the tables of the next layer, applied to this layer's
// input, predict nearly all that the next layer will use (tools/lab/train/README.md: judge). With
// `layers_ahead` these neurons are fetched while the present layer computes (Deja Vu, 4.3; M2Cache, 5.4).
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plugins/predictor/low-rank/kept.hpp"
#include "tierd/plugin.hpp"
#include "tierd/policy/row_scores.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::lossy(tierd::number("threshold", "0.5", 0, 1,
                               "probability of firing from which a neuron is active; 0: all neurons are")),
    tierd::lossy(tierd::number(
        "keep", "0", 0, 1,
        "share of each site's neurons that is active, those with the highest scores; 0: threshold decides")),
    tierd::lossy_by_memory(tierd::flag("fit_memory", "false",
                                       "instead of a fixed share, keep as large a share as fits in memory "
                                       "for all sites together, beside the weights that are used whole")),
    tierd::lossy(tierd::text("mix", "100", nullptr,
                             "for fit_memory: per cent of the neurons in each edition, the best first, as in "
                             "quantizer.ratios; it determines the bytes of a neuron")),
    tierd::integer(
        "layers_ahead", "0", 0, 8,
        "number of following layers that are predicted from the present layer's input, and prefetched while "
        "it computes (Deja Vu: one); a wrong prediction costs a fetch and changes no result"),
};

constexpr const char* kManual =
    "Needs tables: `tier profile` records the inputs of a model's layers and which neurons fire, `tier train "
    "predictor` makes tables of the recording. Set predictor.tensors = \"FILE.safetensors\". With "
    "scheduler.measure_every the report has the missed mass.";

// The host replaces MODEL.
constexpr const char* kTables =
    "make tables with tier profile -m MODEL TEXT -o activations.safetensors and tier train predictor MODEL "
    "activations.safetensors -o predictor.safetensors, and use them with --set "
    "predictor.tensors=predictor.safetensors";

class LowRank {
 public:
  static constexpr uint32_t kCaps =
      TIERD_PREDICTOR_NEEDS_X | TIERD_PREDICTOR_LOSSY | TIERD_PREDICTOR_SCORES | TIERD_PREDICTOR_ROWS_APART;

  explicit LowRank(const tierd::Host& host)
      : host_(host),
        tables_(host.n_sites()),
        active_(host),
        foreseen_(host, false),
        keep_(host),
        by_threshold_(keep_.by_threshold()),
        layers_ahead_(static_cast<uint32_t>(host.integer("layers_ahead"))) {
    const double threshold = host.number("threshold");
    takes_all_ = by_threshold_ && threshold == 0;
    bound_ = threshold == 1 ? std::numeric_limits<float>::infinity()
                            : static_cast<float>(std::log(threshold / (1 - threshold)));
    bool any = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      if (!host.has_tensor((std::string(host.site(s).name) + ".a").c_str())) continue;
      tables_[s] = read(host.site(s));
      any = true;
    }
    if (!any && host.n_sites() != 0) throw tierd::Failure(TIERD_E_UNSUPPORTED, without_tables());
    keep_.read_curves([&](uint32_t s) { return tables_[s].has_value(); });
  }

  int reads_x(uint32_t site) const { return tables_[site] && !takes_all_ ? 1 : 0; }

  void fits() const {
    if (!by_threshold_) (void)keep_.neurons(1, [&](uint32_t s) { return tables_[s].has_value(); });
  }

  void predict(uint32_t site, const tierd_rows_view& rows, tierd_set_out& out) {
    out.all = reads_x(site) == 0 ? 1 : 0;
    if (out.all == 0) rank(active_, *tables_[site], rows, out);
  }

  // Uses this layer's input in place of those of later layers, which are not known yet but similar. A
  // prompt's rows together use nearly everything, so they are not looked ahead of.
  void look_ahead(uint32_t site, const tierd_rows_view& rows) {
    if (rows.x == nullptr || rows.rows > kMostRows || reads_x(site) == 0) return;
    uint32_t layers = 0;
    for (uint32_t later = site + 1; later < host_.n_sites() && layers < layers_ahead_; ++later) {
      if (!tables_[later] || host_.site(later).n_in != rows.dim) continue;
      ++layers;
      idx_.resize(tables_[later]->n);
      score_.resize(tables_[later]->n);
      tierd_set_out out{};
      out.idx = idx_.data();
      out.score = score_.data();
      rank(foreseen_, *tables_[later], rows, out);
      if (out.n != 0) host_.wish(later, later - site, out.idx, out.n, out.score);
    }
  }

 private:
  static constexpr uint32_t kMostRows = 16;  // larger batches are not looked ahead of

  struct Tables {
    uint32_t n = 0;
    uint32_t rank = 0;
    uint32_t a = 0;  // tensors
    uint32_t b = 0;
    const float* bias = nullptr;
  };

  // Returns the reason for missing tables, and the commands that help.
  std::string without_tables() const {
    const auto has = [&](uint8_t axis) {
      for (uint32_t s = 0; s < host_.n_sites(); ++s) {
        if (host_.site(s).axis == axis) return true;
      }
      return false;
    };
    if (!has(TIERD_AXIS_NEURON) && has(TIERD_AXIS_EXPERT))
      return "this model is a mixture, whose router chooses experts; use --config configs/moe-streaming.toml";
    if (!has(TIERD_AXIS_NEURON))
      return "the store is not cut into neurons, which the tables apply to; use --set model.layout=neuron";
    if (!any_may_be_silent())
      return "every neuron of this model fires for every token, because its activation is not ReLU; compute "
             "all neurons with --set predictor.name=dense --set quantizer.name=plain";
    return std::string("no site has tables; ") + kTables +
           "; or compute all neurons with --set predictor.name=dense --set quantizer.name=plain";
  }

  // Returns whether any neuron of a network may contribute nothing to a row.
  bool any_may_be_silent() const {
    for (uint32_t s = 0; s < host_.n_sites(); ++s) {
      if (host_.site(s).axis == TIERD_AXIS_NEURON && !host_.never_silent(s)) return true;
    }
    return false;
  }

  void rank(tierd::RowScores& by, const Tables& tables, const tierd_rows_view& rows, tierd_set_out& out) {
    const auto score = [&](const float* x, uint32_t n_rows, float* scores) {
      inner_.resize(uint64_t{n_rows} * tables.rank);
      host_.linear(tables.a, x, n_rows, inner_.data());
      host_.linear(tables.b, inner_.data(), n_rows, scores);
    };
    const auto kept =
        by_threshold_ ? 0 : keep_.neurons(tables.n, [&](uint32_t s) { return tables_[s].has_value(); });
    const auto bound = [&](const float* scores) {
      return by_threshold_ ? bound_ : bound_of(scores, tables.n, kept);
    };
    by.predict(tables.n, tables.bias, rows, score, bound, out);
  }

  Tables read(const tierd_site_view& site) const {
    const std::string name = site.name;
    const auto check = [&](const std::string& tensor, bool right, const std::string& shape) {
      if (!right)
        throw tierd::Failure(TIERD_E_INVALID, tensor + " should be " + shape +
                                                  ", so it was made for another model or cut; " + kTables);
    };
    const tierd_tensor_view a = host_.tensor((name + ".a").c_str());
    check(name + ".a", a.n_dims == 2 && a.dims[1] == site.n_in,
          "a matrix of " + std::to_string(site.n_in) + " columns");
    const tierd_tensor_view b = host_.tensor((name + ".b").c_str());
    check(name + ".b", b.n_dims == 2 && b.dims[0] == site.n && b.dims[1] == a.dims[0],
          std::to_string(site.n) + " x " + std::to_string(a.dims[0]));
    return {site.n, static_cast<uint32_t>(a.dims[0]), a.tensor, b.tensor, tierd::bias_of(host_, site)};
  }

  // Returns a bound below the `kept` greatest scores; scores equal to the last of them are above it, too.
  float bound_of(const float* scores, uint32_t n, uint32_t kept) {
    if (kept == 0) return std::numeric_limits<float>::infinity();
    ranked_.assign(scores, scores + n);
    const auto last = ranked_.begin() + (kept - 1);
    std::nth_element(ranked_.begin(), last, ranked_.end(), std::greater<>());
    return std::nextafter(*last, -std::numeric_limits<float>::infinity());
  }

  tierd::Host host_;
  std::vector<std::optional<Tables>> tables_;  // [sites]
  bool takes_all_ = false;
  float bound_ = 0;  // of a score
  tierd::RowScores active_, foreseen_;
  tierd::Kept keep_;
  bool by_threshold_ = true;
  uint32_t layers_ahead_ = 0;
  // Each call fills these anew; they are members so that their memory is reused.
  std::vector<float> inner_, ranked_, score_;
  std::vector<uint32_t> idx_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::predictor<LowRank>("low-rank", "1.0",
                                                 "predicts with two thin matrices which neurons fire"),
                       kParams),
    kManual))
