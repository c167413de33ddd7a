#include "tools/tier-train/quality.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tierd {
namespace {

constexpr uint32_t kSliceTokens = 256;  // read at once

double percent(double part, double whole) {
  return whole == 0 ? 0 : 100 * part / whole;
}

}  // namespace

double Quality::active_percent() const {
  return percent(static_cast<double>(active), static_cast<double>(pairs));
}
double Quality::predicted_percent() const {
  return percent(static_cast<double>(predicted), static_cast<double>(pairs));
}
double Quality::missed_percent() const {
  return percent(static_cast<double>(missed), static_cast<double>(active));
}
double Quality::spurious_percent() const {
  return percent(static_cast<double>(spurious), static_cast<double>(pairs - active));
}
double Quality::missed_mass_percent() const {
  return percent(missed_mass, mass);
}

void score(const LowRank& predictor, std::span<const float> x, std::span<float> scores) {
  std::vector<float> hidden(predictor.rank);
  for (uint32_t r = 0; r < predictor.rank; ++r) {
    const float* const row = predictor.a.data() + uint64_t{r} * predictor.d_model;
    hidden[r] = std::inner_product(x.begin(), x.end(), row, 0.0F);
  }
  for (uint32_t n = 0; n < predictor.d_ff; ++n) {
    const float* const row = predictor.b.data() + uint64_t{n} * predictor.rank;
    scores[n] = std::inner_product(hidden.begin(), hidden.end(), row, predictor.bias[n]);
  }
}

void count(Quality& quality, std::span<const float> scores, std::span<const float> contributions) {
  // sigmoid rises, so that its inverse of the threshold can be compared with.
  const auto least = static_cast<float>(std::log(quality.threshold / (1 - quality.threshold)));
  for (size_t n = 0; n < scores.size(); ++n) {
    const bool predicted = scores[n] > least;
    const bool active = contributions[n] > 0;
    quality.predicted += predicted;
    quality.active += active;
    quality.missed += active && !predicted;
    quality.spurious += predicted && !active;
    quality.mass += contributions[n];
    if (!predicted) quality.missed_mass += contributions[n];
  }
  quality.pairs += scores.size();
}

Result<std::vector<Quality>> evaluate(const LowRank& predictor, const Activations& activations,
                                      uint32_t layer, uint32_t first, std::span<const double> thresholds) {
  std::vector<Quality> qualities;
  for (const double threshold : thresholds) qualities.push_back({.threshold = threshold});
  std::vector<float> scores(predictor.d_ff);
  for (uint32_t at = first; at < activations.tokens();) {
    std::vector<uint32_t> tokens(std::min(kSliceTokens, activations.tokens() - at));
    std::iota(tokens.begin(), tokens.end(), at);
    std::vector<float> x(tokens.size() * predictor.d_model);
    std::vector<float> contributions(tokens.size() * predictor.d_ff);
    TIERD_TRY(activations.read_inputs(layer, tokens, x));
    TIERD_TRY(activations.read_contributions(layer, tokens, contributions));
    for (size_t t = 0; t < tokens.size(); ++t) {
      score(predictor, std::span(x).subspan(t * predictor.d_model, predictor.d_model), scores);
      for (Quality& quality : qualities) {
        count(quality, scores, std::span(contributions).subspan(t * predictor.d_ff, predictor.d_ff));
      }
    }
    at += static_cast<uint32_t>(tokens.size());
  }
  return qualities;
}

}  // namespace tierd
