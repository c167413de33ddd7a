// Replays the recorded active sets: the upper bound for predictors. `tier activity truth` makes the recording
// from a first run over the same tokens, in the same chunks; it has these tensors for each site SITE:
//
//   SITE.rows     [passes] rows of the batch
//   SITE.counts   [passes] active neurons, or -1: all
//   SITE.neurons  [sum of the counts] ascending within a pass
//   SITE.scores   [sum of the counts] contribution of each, if it is known: a quantizer ranks by it
//
// After the end of the recording, or for another number of rows, everything is active: never wrong, only
// slow.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::integer("sites_ahead", "8", 0, 63,
                   "number of following sites that are prefetched, as far as the staging has room"),
};

constexpr const char* kManual =
    "Needs a recording of the same run: record it with `tierd --trace run.trace …`, convert it with `tier "
    "activity truth run.trace -o truth.safetensors`, and set predictor.tensors = \"truth.safetensors\". It "
    "is as lossy as the recorded run.";

struct Pass {
  uint32_t rows = 0;
  bool all = false;
  std::vector<uint32_t> neurons;
  const float* scores = nullptr;  // [neurons]; NULL: unknown
};

class Oracle {
 public:
  static constexpr uint32_t kCaps = TIERD_PREDICTOR_LOSSY;  // at least

  explicit Oracle(const tierd::Host& host)
      : host_(host),
        sites_ahead_(static_cast<uint32_t>(host.integer("sites_ahead"))),
        recorded_(host.n_sites()),
        next_(host.n_sites(), 0) {
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const std::string name = host.site(s).name;
      if (!host.has_tensor((name + ".counts").c_str())) continue;
      read(s);
      ++with_counts_;
      with_scores_ += host.has_tensor((name + ".scores").c_str()) ? 1 : 0;
    }
    if (with_counts_ == 0 && host.n_sites() != 0)
      throw tierd::Failure(
          TIERD_E_UNSUPPORTED,
          "no site has a recording; make one with tierd --trace RUN and tier activity truth RUN -o "
          "truth.safetensors, and use it with --set predictor.tensors=truth.safetensors; or compute all "
          "neurons with --set predictor.name=dense");
  }

  // Promises scores only if all recorded sites have them; otherwise plugins that rank by them are refused.
  uint32_t caps() const {
    const bool all = with_scores_ != 0 && with_scores_ == with_counts_;
    return all ? kCaps | TIERD_PREDICTOR_SCORES : kCaps;
  }

  void predict(uint32_t site, const tierd_rows_view& rows, tierd_set_out& out) {
    const uint32_t pass = next_[site]++;
    ++passes_;
    out.all = 1;
    if (pass < recorded_[site].size() && recorded_[site][pass].rows == rows.rows) {
      ++known_;
      const Pass& truth = recorded_[site][pass];
      out.all = truth.all ? 1 : 0;
      if (!truth.all) {
        out.n = static_cast<uint32_t>(truth.neurons.size());
        std::copy(truth.neurons.begin(), truth.neurons.end(), out.idx);
        if (out.score != nullptr && truth.scores != nullptr) {
          std::copy_n(truth.scores, out.n, out.score);
          out.scored = 1;
        }
      }
    }
    host_.metric("recorded_share", static_cast<double>(known_) / static_cast<double>(passes_));
  }

  // Wishes for the recorded neurons of the next sites. A site after the end of the walk belongs to the next
  // step.
  void look_ahead(uint32_t site, const tierd_rows_view&) {
    const uint32_t n = host_.n_sites();
    for (uint32_t d = 1; d <= sites_ahead_ && d < n; ++d) {
      const uint32_t s = (site + d) % n;
      if (next_[s] >= recorded_[s].size()) continue;  // given, or not recorded
      const Pass& truth = recorded_[s][next_[s]];
      if (truth.all) {
        host_.wish(s, d);
      } else if (!truth.neurons.empty()) {
        host_.wish(s, d, truth.neurons.data(), static_cast<uint32_t>(truth.neurons.size()));
      }
    }
  }

 private:
  void read(uint32_t s) {
    const tierd_site_view& site = host_.site(s);
    const std::string name = site.name;
    const auto tensor = [&](const char* suffix) {
      const tierd_tensor_view view = host_.tensor((name + suffix).c_str());
      if (view.n_dims != 1)
        throw tierd::Failure(TIERD_E_INVALID, name + suffix + " should have one dimension");
      return view;
    };
    const tierd_tensor_view rows = tensor(".rows"), counts = tensor(".counts"), neurons = tensor(".neurons");
    if (rows.dims[0] != counts.dims[0])
      throw tierd::Failure(TIERD_E_INVALID, name + ".rows and .counts should have the same length");
    const float* scores = nullptr;
    if (host_.has_tensor((name + ".scores").c_str())) {
      const tierd_tensor_view view = tensor(".scores");
      if (view.dims[0] != neurons.dims[0])
        throw tierd::Failure(TIERD_E_INVALID, name + ".neurons and .scores should have the same length");
      for (uint64_t i = 0; i < view.dims[0]; ++i) {
        if (!std::isfinite(view.data[i]))
          throw tierd::Failure(TIERD_E_INVALID, name + ".scores should hold finite numbers");
      }
      scores = view.data;
    }
    uint64_t at = 0;
    for (uint64_t p = 0; p < counts.dims[0]; ++p) {
      Pass& pass = recorded_[s].emplace_back();
      pass.rows = whole(rows.data[p], UINT16_MAX, name + ".rows");
      pass.all = counts.data[p] == -1;
      const uint32_t count = pass.all ? 0 : whole(counts.data[p], site.n, name + ".counts");
      if (count > neurons.dims[0] - at)
        throw tierd::Failure(TIERD_E_INVALID, name + ".neurons has fewer values than .counts requires");
      if (scores != nullptr) pass.scores = scores + at;
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t neuron = whole(neurons.data[at++], site.n - 1.0, name + ".neurons");
        if (i > 0 && neuron <= pass.neurons.back())
          throw tierd::Failure(TIERD_E_INVALID, name + ".neurons should ascend within a pass");
        pass.neurons.push_back(neuron);
      }
    }
  }
  static uint32_t whole(float value, double most, const std::string& where) {
    if (!(value >= 0 && value <= most) || value != std::floor(value))
      throw tierd::Failure(TIERD_E_INVALID, where + " should hold whole numbers up to " +
                                                std::to_string(static_cast<uint64_t>(most)));
    return static_cast<uint32_t>(value);
  }

  tierd::Host host_;
  uint32_t sites_ahead_;
  std::vector<std::vector<Pass>> recorded_;  // [sites][passes]
  std::vector<uint32_t> next_;               // [sites] the next pass
  uint32_t with_counts_ = 0;                 // sites that are recorded
  uint32_t with_scores_ = 0;                 // of these, sites with scores
  uint64_t passes_ = 0;
  uint64_t known_ = 0;
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::predictor<Oracle>("oracle", "1.0", "uses the active sets of a recorded run"),
                       kParams),
    kManual))
