// Base of a predictor that scores every neuron of a site for every row of a batch and takes those above a
// bound as active. Optional; C++17, header-only.
#ifndef TIERD_POLICY_ROW_SCORES_HPP
#define TIERD_POLICY_ROW_SCORES_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

// Returns the tensor SITE.bias [neurons], or NULL if there is none. Throws Failure if it has another shape.
inline const float* bias_of(const Host& host, const tierd_site_view& site) {
  const std::string name = std::string(site.name) + ".bias";
  if (!host.has_tensor(name.c_str())) return nullptr;
  const tierd_tensor_view bias = host.tensor(name.c_str());
  if (bias.n_dims != 1 || bias.dims[0] != site.n)
    throw Failure(TIERD_E_INVALID, name + " should be " + std::to_string(site.n) + " values");
  return bias.data;
}

// Finds the active neurons of a batch, row after row, for `predict`. Keeps its buffers from call to call.
class RowScores {
 public:
  // tells: whether the share of neurons that were active so far is reported to the host as a metric.
  explicit RowScores(const Host& host, bool tells = true) : host_(host), tells_(tells) {}

  // `n`: neurons of the site; `bias` [n] or NULL is added to their scores.
  // score(x, rows, scores): fills scores [rows x n] from x [rows x dim].
  // bound(scores): returns the bound above which a row's scores [n] make neurons active.
  // The score returned for a neuron is the greatest over its rows.
  template <class Score, class Bound>
  void predict(uint32_t n, const float* bias, const tierd_rows_view& rows, Score score, Bound bound,
               tierd_set_out& out) {
    if (rows.rows == 1) return predict_one(n, bias, rows, score, bound, out);
    const uint32_t words = (rows.rows + 63) / 64;
    active_.assign(uint64_t{n} * words, 0);
    if (out.score != nullptr) greatest_.assign(n, std::numeric_limits<float>::lowest());
    for (uint32_t first = 0; first < rows.rows; first += kRowsAtOnce) {
      const uint32_t some = std::min(kRowsAtOnce, rows.rows - first);
      scores_.resize(uint64_t{some} * n);
      score(rows.x + uint64_t{first} * rows.dim, some, scores_.data());
      for (uint32_t row = first; row < first + some; ++row) {
        float* const scores = scores_.data() + uint64_t{row - first} * n;
        for (uint32_t i = 0; bias != nullptr && i < n; ++i) scores[i] += bias[i];
        const float least = bound(static_cast<const float*>(scores));
        for (uint32_t i = 0; i < n; ++i) {
          if (scores[i] > least) active_[uint64_t{i} * words + row / 64] |= uint64_t{1} << row % 64;
        }
        if (out.score == nullptr) continue;
        for (uint32_t i = 0; i < n; ++i) greatest_[i] = std::max(greatest_[i], scores[i]);
      }
    }
    answer(n, words, out);
    give_scores(greatest_, out);
    count(out.n, n);
  }

 private:
  // Handles a batch of one row, as in decoding, which needs no row masks.
  template <class Score, class Bound>
  void predict_one(uint32_t n, const float* bias, const tierd_rows_view& rows, Score score, Bound bound,
                   tierd_set_out& out) {
    scores_.resize(n);
    score(rows.x, 1, scores_.data());
    for (uint32_t i = 0; bias != nullptr && i < n; ++i) scores_[i] += bias[i];
    const float least = bound(static_cast<const float*>(scores_.data()));
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; ++i) {
      out.idx[found] = i;  // overwritten by the next one if this one is not active
      found += scores_[i] > least ? 1 : 0;
    }
    out.all = 0;
    out.n = found;
    give_scores(scores_, out);
    count(found, n);
  }

  void count(uint32_t predicted, uint32_t asked) {
    if (!tells_) return;
    predicted_ += predicted;
    asked_ += asked;
    host_.metric("active_share", static_cast<double>(predicted_) / static_cast<double>(asked_));
  }

  static void give_scores(const std::vector<float>& scores, tierd_set_out& out) {
    if (out.score == nullptr) return;
    for (uint32_t i = 0; i < out.n; ++i) out.score[i] = scores[out.idx[i]];
    out.scored = 1;
  }

  static constexpr uint32_t kRowsAtOnce = 16;  // rows whose scores are in memory at the same time

  // Writes the neurons that some row uses, and their row masks.
  void answer(uint32_t n, uint32_t words, tierd_set_out& out) const {
    out.all = 0;
    out.n = 0;
    for (uint32_t neuron = 0; neuron < n; ++neuron) {
      const uint64_t* mask = active_.data() + uint64_t{neuron} * words;
      if (std::all_of(mask, mask + words, [](uint64_t word) { return word == 0; })) continue;
      if (out.row_mask != nullptr) std::copy_n(mask, words, out.row_mask + uint64_t{out.n} * words);
      out.idx[out.n++] = neuron;
    }
  }

  Host host_;
  bool tells_;
  std::vector<uint64_t> active_;  // [n x words]
  std::vector<float> scores_;     // [rows at once x n]
  std::vector<float> greatest_;   // [n]
  uint64_t predicted_ = 0;        // neurons of all calls
  uint64_t asked_ = 0;
};

}  // namespace tierd
#endif
