#include "tools/lab/planted/layer_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

namespace tierd {
namespace {

constexpr int kHalvings = 60;
constexpr int kIntervals = 2000;  // of Simpson's rule; even
constexpr double kFarOut = 10;    // deviations beyond which the density is negligible

// Returns the zero of `f`, which rises from a negative to a positive value.
double bisect(double low, double high, const std::function<double(double)>& f) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

double inverse_tail(double share) {
  return bisect(-kFarOut, kFarOut, [&](double x) { return share - normal_tail(x); });
}

// Returns the share of pairs of correlation `c` that are above `a` and above `b`.
double both_above(double a, double b, double c) {
  const double rest = std::sqrt(1 - c * c);
  const double step = (kFarOut - a) / kIntervals;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double z = a + i * step;
    const double weight = i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * normal_density(z) * normal_tail((b - c * z) / rest);
  }
  return sum * step / 3;
}

std::vector<double> shares(const PlantedProfile& p, uint32_t n_layers, double exponent) {
  const uint32_t middle = n_layers / 2 - 1;
  const auto bent = [&](double from, double to, uint32_t step, uint32_t steps) {
    return steps == 0 ? from : from + (to - from) * std::pow(static_cast<double>(step) / steps, exponent);
  };
  std::vector<double> all(n_layers);
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    all[layer] = layer <= middle ? bent(p.first, p.middle, layer, middle)
                                 : bent(p.middle, p.last, layer - middle, n_layers - 1 - middle);
  }
  return all;
}

}  // namespace

double normal_density(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}

double normal_tail(double x) {
  return std::erfc(x / std::numbers::sqrt2) / 2;
}

LayerProfile layer_profile(double active, const PlantedProfile& profile) {
  LayerProfile layer;
  layer.active = active;
  const double found = (1 - profile.false_negatives) * active;
  layer.predicted = found + profile.false_positives * (1 - active);
  const double active_above = inverse_tail(active);
  const double predicted_above = inverse_tail(layer.predicted);
  const double correlation =
      bisect(0, 1 - 1e-9, [&](double c) { return both_above(active_above, predicted_above, c) - found; });
  const double c2 = correlation * correlation;
  const double explained = c2 / (1 + profile.threshold_spread * profile.threshold_spread * (1 - c2));
  layer.noise = std::sqrt(1 - explained);
  layer.spread = profile.threshold_spread * std::sqrt(explained);
  const double spread2 = layer.spread * layer.spread;
  layer.mean = active_above * std::sqrt(1 + spread2);
  layer.margin = layer.mean - predicted_above * std::sqrt(explained + spread2);
  return layer;
}

Result<std::vector<double>> active_shares(const PlantedProfile& profile, uint32_t n_layers) {
  constexpr uint32_t kLeastLayers = 3;  // a first, a middle and a last layer
  constexpr double kLeastExponent = 0.1;
  constexpr double kMostExponent = 10;
  if (n_layers < kLeastLayers) {
    return Error{Code::invalid_argument, profile.name,
                 fmt::format("a planted model has at least {} layers, found {}", kLeastLayers, n_layers)};
  }
  const auto mean = [&](double exponent) {
    const std::vector<double> all = shares(profile, n_layers, exponent);
    return std::accumulate(all.begin(), all.end(), 0.0) / n_layers;
  };
  const auto [least, most] = std::minmax({mean(kLeastExponent), mean(kMostExponent)});
  if (profile.mean < least || profile.mean > most) {
    return Error{
        Code::invalid_argument, profile.name,
        fmt::format("no curve over {} layers from {} by {} to {} has the mean {}, expected {:.4f} to {:.4f}",
                    n_layers, profile.first, profile.middle, profile.last, profile.mean, least, most)};
  }
  const double sign = mean(kMostExponent) > mean(kLeastExponent) ? 1 : -1;
  const double exponent =
      bisect(kLeastExponent, kMostExponent, [&](double x) { return sign * (mean(x) - profile.mean); });
  return shares(profile, n_layers, exponent);
}

uint32_t predictor_rank(const PlantedProfile& profile, uint32_t layer, uint32_t n_layers, uint32_t d_model) {
  constexpr uint32_t kMostOfWidth = 4;  // the paper's 1024 of 4096 is a quarter
  const bool is_last = layer >= n_layers * (1 - profile.last_share);
  return std::min(is_last ? profile.last_rank : profile.rank, std::max(2u, d_model / kMostOfWidth));
}

}  // namespace tierd
