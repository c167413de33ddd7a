#include "tools/lab/train/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tierd {
namespace {

constexpr uint32_t kSliceTokens = 256;  // read and scored at once

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
double Quality::recall_percent() const {
  return active == 0 ? 0 : 100 - missed_percent();
}
double Quality::spurious_percent() const {
  return percent(static_cast<double>(spurious), static_cast<double>(pairs - active));
}
double Quality::missed_mass_percent() const {
  return percent(missed_mass, mass);
}

void count(Quality& quality, float least, std::span<const float> scores,
           std::span<const float> contributions) {
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

Status for_each_token(
    const LowRank& predictor, const Activations& activations, uint32_t layer, uint32_t input_of,
    uint32_t first,
    const std::function<void(std::span<const float> scores, std::span<const float> contributions)>& judge) {
  for (uint32_t at = first; at < activations.tokens();) {
    std::vector<uint32_t> tokens(std::min(kSliceTokens, activations.tokens() - at));
    std::iota(tokens.begin(), tokens.end(), at);
    std::vector<float> x(tokens.size() * predictor.d_model);
    std::vector<float> contributions(tokens.size() * predictor.d_ff);
    TIERD_TRY(activations.read_inputs(input_of, tokens, x));
    TIERD_TRY(activations.read_contributions(layer, tokens, contributions));
    std::vector<float> scores(contributions.size());
    score(predictor, x, scores);
    for (size_t at_pair = 0; at_pair < scores.size(); at_pair += predictor.d_ff) {
      judge(std::span<const float>(scores).subspan(at_pair, predictor.d_ff),
            std::span<const float>(contributions).subspan(at_pair, predictor.d_ff));
    }
    at += static_cast<uint32_t>(tokens.size());
  }
  return {};
}

Result<std::vector<Quality>> evaluate(const LowRank& predictor, const Activations& activations,
                                      uint32_t layer, uint32_t first, std::span<const double> thresholds) {
  std::vector<Quality> qualities;
  for (const double threshold : thresholds) qualities.push_back({.threshold = threshold});
  TIERD_TRY(for_each_token(predictor, activations, layer, layer, first, [&](auto scores, auto contributions) {
    for (Quality& quality : qualities) {
      // sigmoid rises, so scores can be compared with its inverse of the threshold.
      const double least = std::log(quality.threshold / (1 - quality.threshold));
      count(quality, static_cast<float>(least), scores, contributions);
    }
  }));
  return qualities;
}

Result<Quality> evaluate_share(const LowRank& predictor, const Activations& activations, uint32_t layer,
                               uint32_t input_of, double share) {
  Quality quality;
  const auto left = static_cast<size_t>(std::lround((1 - share) * predictor.d_ff));
  std::vector<float> ranked;
  TIERD_TRY(for_each_token(predictor, activations, layer, input_of, 0, [&](auto scores, auto contributions) {
    float least = -std::numeric_limits<float>::infinity();
    if (left > 0) {
      ranked.assign(scores.begin(), scores.end());
      const auto last = ranked.begin() + static_cast<std::ptrdiff_t>(left - 1);
      std::ranges::nth_element(ranked, last);
      least = *last;
    }
    count(quality, least, scores, contributions);
  }));
  return quality;
}

}  // namespace tierd
